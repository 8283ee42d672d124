"""A pod's way as spans: admitted, decided, bound, held; sent by real processes to OpenTelemetry's own collector."""

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.integration.agent.node import NODE, Node, has_writable_groups, until
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import apply, manifests
from tests.parts.fixtures import need
from tests.parts.processes import Running, free_port

PROFILE = """apiVersion: koordpolicy.io/v1alpha1
kind: ColocationProfile
metadata: {name: traced}
spec: {match: {namespaces: {matchLabels: {kubernetes.io/metadata.name: default}}}, labels: {seen: "yes"}}
---
# Nobody reports how much the node uses, so nobody is to wait for it.
apiVersion: koordpolicy.io/v1alpha1
kind: MetricCollection
metadata: {name: nobody}
spec: {enabled: false}
"""
COLLECTOR = """receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{file: {{path: {file}, flush_interval: 100ms}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}
"""
HELD = has_writable_groups()
"""Whether this machine's control groups can stand for those of pods: no agent holds anybody without."""


def spans(file: Path) -> Iterator[Mapping[str, Any]]:
    """All spans that the collector has taken, each with the service that sent it and its attributes as a mapping."""
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        for resource in json.loads(line)["resourceSpans"]:
            service = _attributes(resource["resource"])["service.name"]
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    yield {**span, "service": service, "attributes": _attributes(span)}


def _attributes(of: Mapping[str, Any]) -> Mapping[str, str]:
    return {one["key"]: next(iter(one["value"].values())) for one in of["attributes"]}


def pod(name: str, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    container = {"name": "main", "image": "none"}
    metadata = {"name": name, "annotations": dict(annotations or {})}
    return {"metadata": metadata, "spec": {"schedulerName": "koord-scheduler", "containers": [container]}}


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def node(own_apiserver: Callable[..., ApiServer], tmp_path: Path) -> Iterator[Node]:
    node = Node(own_apiserver(deployed=True), tmp_path)
    node.prepare()
    node.access.request("DELETE", f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{NODE}")
    node.without_taints()
    try:
        yield node
    finally:
        node.clean()


@pytest.mark.soak
def test_a_pods_way_is_one_trace(node: Node, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    (program,) = need(pytestconfig, "otel-collector")
    access = node.access
    apply(access, manifests(REPOSITORY / "deploy" / "manager"))
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "traced.yaml").write_text(PROFILE)
    otlp, file = free_port(), tmp_path / "spans.jsonl"
    (tmp_path / "collector.yaml").write_text(COLLECTOR.format(port=otlp, file=file))
    webhook = free_port()
    tracing = [f"--tracing-endpoint=http://127.0.0.1:{otlp}", "--tracing-sampling=1"]
    flags = {
        "manager": [
            f"--webhook=127.0.0.1:{webhook}",
            f"--webhook-url=https://localhost:{webhook}",
            "--webhook-drain=0",
        ],
        "scheduler": [],
        "agent": [
            f"--node={NODE}",
            "--dry-run",
            "--pods-from=apiserver",
            f"--kubelet-cgroup-root={node.parent}",
        ],
    }
    with ExitStack() as running:
        collector = Running([program, f"--config={tmp_path / 'collector.yaml'}"], tmp_path / "collector.log")
        running.enter_context(collector).ready(lambda: listens(otlp))
        for name, words in flags.items():
            command = [
                sys.executable,
                "-m",
                "koordpolicy.cli",
                name,
                f"--policies={policies}",
                "--http=127.0.0.1:0",
            ]
            command += [f"--kubeconfig={access.kubeconfig(f'koordpolicy-{name}')}", *words, *tracing]
            environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OTEL_BSP_SCHEDULE_DELAY": "100"}
            running.enter_context(Running(command, tmp_path / f"{name}.log", environment=environment))

        def made(name: str, annotations: Mapping[str, str] | None = None) -> bool:
            """Whether the pod was made and the webhook saw it; one that it did not see is taken away again."""
            path = "/api/v1/namespaces/default/pods"
            status, answer = access.request("POST", path, pod(name, annotations))
            if status == 201 and answer["metadata"].get("labels", {}).get("seen"):
                return True
            access.request("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
            return False

        until(lambda: made("one"))
        given = f"00-{'12' * 16}-{'34' * 8}-01"
        assert made("two", {"koordpolicy.io/traceparent": given})
        assert made("three", {"koordpolicy.io/traceparent": given[:-1] + "0"})

        def stored(name: str) -> dict[str, Any]:
            _, found = access.request("GET", f"/api/v1/namespaces/default/pods/{name}")
            return dict(found)

        def placed(name: str) -> bool:
            return bool(stored(name)["spec"].get("nodeName"))

        for name in ("one", "two", "three"):
            until(partial(placed, name))
            if HELD:
                node.make_group(stored(name)["metadata"]["uid"])
            node.run_container(name)

        def of(name: str) -> dict[str, Mapping[str, Any]]:
            return {one["name"]: one for one in spans(file) if one["attributes"].get("k8s.pod.name") == name}

        wanted = {"admit", "schedule", "bind", *(["hold"] if HELD else ())}
        until(lambda: wanted <= of("one").keys() and wanted <= of("two").keys())
        assert of("three") == {}, "its trace is not sampled"

    services = {"admit": "manager", "schedule": "scheduler", "bind": "scheduler", "hold": "agent"}
    for name, trace in (("one", of("one")["admit"]["traceId"]), ("two", "12" * 16)):
        found = of(name)
        for step, span in found.items():
            assert span["traceId"] == trace
            assert span["service"] == f"koordpolicy-{services[step]}"
            assert span["attributes"]["koordpolicy.revision"]
            assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert found["schedule"]["parentSpanId"] == found["admit"]["spanId"]
        assert found["bind"]["parentSpanId"] == found["schedule"]["spanId"]
        assert found["schedule"]["attributes"]["k8s.node.name"] == NODE
        if HELD:
            assert found["hold"]["parentSpanId"] == found["admit"]["spanId"]
            assert int(found["hold"]["attributes"]["koordpolicy.files"]) > 0
    assert not of("one")["admit"].get("parentSpanId")
    assert of("two")["admit"]["parentSpanId"] == "34" * 8
