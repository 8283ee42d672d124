"""Alerts and dashboards: what they ask for is there, each alert fires and clears, and Prometheus itself scrapes real processes."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec.yaml
import pytest

from koordpolicy.runtime.metrics.metric import MetricKind
from koordpolicy.runtime.metrics.table import METRICS
from tests.conftest import REPOSITORY
from tests.integration.agent.node import NODE, Node, has_writable_groups
from tests.integration.monitoring.drawing import draw
from tests.parts.apiserver import Access, ApiServer
from tests.parts.deployed import apply, manifests
from tests.parts.fixtures import need
from tests.parts.processes import Running, free_port
from tests.parts.yarn import Yarn

FOLDER = REPOSITORY / "deploy" / "monitoring"
RULES = msgspec.yaml.decode((FOLDER / "rules.yaml").read_bytes())["spec"]
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
CASES = msgspec.yaml.decode((FOLDER / "rules.test.yaml").read_bytes())
DASHBOARDS = {
    file.stem: json.loads(file.read_bytes()) for file in sorted((FOLDER / "dashboards").glob("*.json"))
}
OF_SCRAPES = {"component", "instance"}
OF_PROCESSES = {"process_cpu_seconds_total", "process_resident_memory_bytes"}

PICTURES = REPOSITORY / "build" / "monitoring"
LIVE = pytest.mark.skipif(
    os.environ.get("KOORDPOLICY_MONITORING") != "full",
    reason="two minutes of an API server, four processes, YARN and Prometheus: KOORDPOLICY_MONITORING=full",
)
PATIENCE = 120.0


def queries() -> Iterator[tuple[str, str]]:
    """What every panel asks, with dashboard and title."""
    for name, board in DASHBOARDS.items():
        for panel in board["panels"]:
            for target in panel["targets"]:
                yield f"{name}: {panel['title']}", target["expr"].replace("$__rate_interval", "5m")


def series_of() -> Mapping[str, frozenset[str]]:
    """Names of series with their labels, as processes show them."""
    found = {name: frozenset[str]() for name in OF_PROCESSES}
    for metric in METRICS:
        names = (metric.name, metric.also) if metric.also else (metric.name,)
        for name in names:
            ends = ("_bucket", "_sum", "_count") if metric.kind is MetricKind.HISTOGRAM else ("",)
            for end in ends:
                found[name + end] = frozenset(metric.labels) | ({"le"} if end == "_bucket" else set())
    return found


ASKED = [*queries(), *((name, rule["expr"]) for name, rule in ALERTS.items())]


@pytest.mark.parametrize(("place", "expression"), ASKED, ids=[place for place, _ in ASKED])
def test_what_is_asked_for_is_shown(place: str, expression: str) -> None:
    known = series_of()
    plain = re.sub(r'"[^"]*"', '""', expression)
    names = set(re.findall(r"\b(?:koordpolicy|koordlet|scheduler|process)_\w+", plain))
    assert names
    assert names <= known.keys()
    labels = {label for name in names for label in known[name]} | OF_SCRAPES
    selected = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"\"", plain))
    grouped = {
        label.strip() for group in re.findall(r"\bby \(([^)]*)\)", plain) for label in group.split(",")
    }
    assert selected | grouped <= labels


def test_every_alert_has_a_runbook_a_case_and_texts_that_name_labels_it_has() -> None:
    headings = set(re.findall(r"^### (\w+)$", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE))
    assert headings == set(ALERTS)
    assert [case["name"] for case in CASES["tests"]] == list(ALERTS)
    for case in CASES["tests"]:
        values = [len(test["exp_samples"]) for test in case["promql_expr_test"]]
        assert values == [1, 0], case["name"]  # it fires, then it clears
        assert f'alertname="{case["name"]}"' in case["promql_expr_test"][0]["expr"]
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert rule["annotations"]["runbook"] == f"deploy/monitoring/README.md#{name.lower()}"
        told = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        grouped = re.findall(r"\bby \(([^)]*)\)", rule["expr"])
        kept = {label.strip() for label in grouped[0].split(",")} if grouped else OF_SCRAPES
        assert told <= kept, name


def test_every_alert_fires_and_clears_by_promtool(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    (prometheus,) = need(pytestconfig, "prometheus")
    tool = prometheus.parent / "root" / "usr" / "bin" / "promtool"
    tool = tool if tool.exists() else prometheus.with_name("promtool")
    (tmp_path / "rules.yaml").write_bytes(msgspec.yaml.encode(RULES))
    (tmp_path / "rules.test.yaml").write_bytes((FOLDER / "rules.test.yaml").read_bytes())
    for words in (["check", "rules", "rules.yaml"], ["test", "rules", "rules.test.yaml"]):
        ran = subprocess.run(
            [tool, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


class Prometheus:
    """A Prometheus that scrapes every second, and evaluates alerts as often, without waiting before they fire."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._base}/{path}", timeout=10) as answer:  # noqa: S310
            return json.loads(answer.read())["data"]

    def query(self, expression: str) -> Sequence[Any]:
        found: Sequence[Any] = self.ask(f"query?query={urllib.parse.quote(expression)}")["result"]
        return found

    def range(self, expression: str) -> Sequence[Any]:
        """Its series over the last two minutes."""
        asked = urllib.parse.quote(expression.replace("$__rate_interval", "30s"))
        now = time.time()
        found: Sequence[Any] = self.ask(f"query_range?query={asked}&start={now - 120}&end={now}&step=1")[
            "result"
        ]
        return found

    def is_ready(self) -> bool:
        try:
            self.ask("status/runtimeinfo")
        except OSError:
            return False
        return True

    def firing(self) -> set[str]:
        return {
            one["labels"]["alertname"] for one in self.ask("alerts")["alerts"] if one["state"] == "firing"
        }


def until(question: Callable[[], object], told: Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE
    while not question():
        assert time.monotonic() < end, told()
        time.sleep(0.5)


PER_PANEL = {
    # What has to happen for these panels to have anything to show; see `happenings`.
    "policies: Refused revisions": "a commit that does not compile",
    "policies: Trouble with the source": "a directory that is gone",
}
BUNDLE = """apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: watched}
spec: {extends: [koordinator]}
---
apiVersion: koordpolicy.io/v1alpha1
kind: Rollout
metadata: {name: watched}
spec:
  kinds: [Overcommit]
  steps: [{name: beside, shadow: {sample: 100%}, hold: 1h}]
---
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: default}
spec: {enabled: true}
---
apiVersion: koordpolicy.io/v1alpha1
kind: MetricCollection
metadata: {name: watched}
spec: {every: 5s}
---
apiVersion: koordpolicy.io/v1alpha1
kind: Prediction
metadata: {name: soon}
spec: {coldStart: 1s, interval: 1s, method: Pods}
---
apiVersion: koordpolicy.io/v1alpha1
kind: MemoryEviction
metadata: {name: default}
spec: {enabled: true, threshold: 1%, bestEffort: {enabled: true}}
---
# The machine is as busy as whatever else it does makes it.
apiVersion: koordpolicy.io/v1alpha1
kind: SchedulingProfile
metadata: {name: koord-scheduler}
spec:
  schedulerName: koord-scheduler
  parameters: {usageThresholds: {value: {cpu: 0%, memory: 0%}}}
---
apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: owner}
spec: {enforcement: audit, require: {cel: "'owner' in pod.annotations"}, message: say who is called at night}
---
apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: failing}
spec: {enforcement: audit, require: {cel: "pod.annotations['owner'] == 'me'"}, message: nobody says so}
"""
SHARE = "apiVersion: koordpolicy.io/v1alpha1\nkind: Overcommit\nmetadata: {{name: share}}\nspec: {{resource: batch, {field}}}\n"
GANG = {
    "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "gang"},
    "spec": {"minMember": 2},
}


@pytest.fixture
def node(own_apiserver: Callable[..., ApiServer], tmp_path: Path) -> Iterator[Node]:
    node = Node(own_apiserver(deployed=True), tmp_path)
    node.prepare()
    node.without_taints()
    try:
        yield node
    finally:
        node.clean()


@LIVE
@pytest.mark.skipif(
    not has_writable_groups(), reason="this machine's control groups (version 1) cannot be written"
)
def test_prometheus_scrapes_real_processes_every_panel_has_data_and_alerts_fire(
    node: Node, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    program, hadoop = need(pytestconfig, "prometheus", "hadoop-yarn")
    access = node.access
    apply(access, manifests(REPOSITORY / "deploy" / "manager"))
    node.post("/api/v1/namespaces", {"metadata": {"name": "koordinator-system"}})
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "koordpolicy.yaml").write_text(BUNDLE)
    (policies / "share.yaml").write_text(SHARE.format(field="parameters: {cpuReclaim: 50%}"))
    ports = {
        name: free_port()
        for name in ("manager", "scheduler", "agent", "yarn-operator", "front", "webhook", "prometheus")
    }
    place = tmp_path / "front" / "webhook.sock"
    place.parent.mkdir()
    flags = {
        "manager": [f"--webhook=unix:{place}", f"--webhook-url=https://localhost:{ports['webhook']}"],
        "scheduler": [],
        "yarn-operator": ["--yarn-user=root"],
        "agent": [f"--node={NODE}", f"--kubelet-cgroup-root={node.parent}", "--pods-from=apiserver", f"--state-dir={tmp_path / 'state'}"],
    }  # fmt: skip
    rules = json.loads(json.dumps(RULES))
    for rule in rules["groups"][0]["rules"]:
        rule.pop("for", None)
    (tmp_path / "rules.yaml").write_bytes(msgspec.yaml.encode(rules))
    scrapes = [
        {"targets": [f"127.0.0.1:{ports[name]}"], "labels": {"component": name}} for name in (*flags, "front")
    ]
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(tmp_path / "rules.yaml")],
        "scrape_configs": [{"job_name": "koordpolicy", "static_configs": scrapes}],
    }
    (tmp_path / "prometheus.yaml").write_bytes(msgspec.yaml.encode(settings))
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with ExitStack() as running:
        yarn = running.enter_context(_shared_yarn(access, hadoop, tmp_path))
        flags["yarn-operator"].append(f"--yarn-url={yarn.url}")
        for name, words in flags.items():
            command = [
                sys.executable, "-m", "koordpolicy.cli", name, f"--http=127.0.0.1:{ports[name]}", f"--policies={policies}",
                f"--kubeconfig={access.kubeconfig(f'koordpolicy-{name}')}", f"--instance={name}", *words,
            ]  # fmt: skip
            running.enter_context(Running(command, tmp_path / f"{name}.log", environment=environment))
        front = [
            sys.executable, "-m", "koordpolicy.cli", "front", f"--listen=127.0.0.1:{ports['webhook']}", f"--server={place}",
            f"--http=127.0.0.1:{ports['front']}",
        ]  # fmt: skip
        running.enter_context(Running(front, tmp_path / "front.log", environment=environment))
        started = Running(
            [
                program, f"--config.file={tmp_path / 'prometheus.yaml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
            ],
            tmp_path / "prometheus.log",
        )  # fmt: skip
        daemon = running.enter_context(started)
        prometheus = Prometheus(ports["prometheus"])
        daemon.ready(prometheus.is_ready)
        until(
            lambda: len(prometheus.query("koordpolicy_active_revision_info")) == 4,
            lambda: str(prometheus.query("up")),
        )
        until(lambda: _made(access, "one"), lambda: "no pod")
        node.post("/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups", GANG)
        for name in ("first", "second"):
            assert _made(access, name, {"pod-group.scheduling.sigs.k8s.io": "gang"})
        with socket.create_connection(("127.0.0.1", ports["webhook"])) as careless:
            careless.sendall(b"this is no TLS" * 10)
        node.pod("service", "LS", priorityClassName="koord-prod")
        node.pod(
            "batch", priorityClassName="koord-batch"
        )  # the agent evicts it: more memory is in use than the policy has it
        (policies / "share.yaml").write_text(SHARE.format(field="parameters: {cpuReclaim: 55%}"))
        found: set[str] = set()

        def without_data() -> dict[str, str]:
            """The panels that have had no data yet. What evicted and finished pods leave is seen once."""
            found.update(
                place for place, asked in queries() if place not in found and prometheus.query(asked)
            )
            return {place: asked for place, asked in queries() if place not in {*found, *PER_PANEL}}

        until(lambda: not without_data(), lambda: f"{without_data()} {_waiting(access)}")
        decided, active = (
            {one["metric"]["revision"] for one in prometheus.query(f"last_over_time({name}[5m])")}
            for name in ("koordpolicy_revision_decisions_total", "koordpolicy_active_revision_info")
        )
        assert decided == active, "one word for a revision in all processes"
        assert "KoordpolicyRevisionRejected" not in prometheus.firing()
        (policies / "share.yaml").write_text(SHARE.format(field="parameters: {noSuchParameter: 1%}"))
        until(lambda: "KoordpolicyRevisionRejected" in prometheus.firing(), lambda: str(prometheus.firing()))
        without_data()
        assert "policies: Refused revisions" in found
        (policies / "share.yaml").write_text(SHARE.format(field="parameters: {cpuReclaim: 40%}"))
        until(
            lambda: "KoordpolicyRevisionRejected" not in prometheus.firing(), lambda: str(prometheus.firing())
        )
        _fires_once_it_is_away(yarn, prometheus)
        shutil.rmtree(policies)
        until(
            lambda: without_data() == {} and "policies: Trouble with the source" in found,
            lambda: "a directory that is gone is no trouble",
        )
        for name, board in DASHBOARDS.items():
            assert draw(board, prometheus.range, PICTURES / f"{name}.png") == [], name


@contextmanager
def _shared_yarn(access: Access, hadoop: Path, folder: Path) -> Iterator[Yarn]:
    """A YARN whose NodeManager is that of the node."""
    with Yarn(hadoop, folder / "yarn") as yarn:
        annotations = {"node.yarn.koordinator.sh": yarn.node()["id"]}
        access.request("PATCH", f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": annotations}})
        yield yarn


def _fires_once_it_is_away(yarn: Yarn, prometheus: Prometheus) -> None:
    assert "KoordpolicyYARNUnreachable" not in prometheus.firing()
    yarn.kill("resourcemanager")
    until(lambda: "KoordpolicyYARNUnreachable" in prometheus.firing(), lambda: str(prometheus.firing()))


def _waiting(access: Access) -> list[tuple[str, Any]]:
    """The pods with their conditions."""
    _, listed = access.request("GET", "/api/v1/namespaces/default/pods")
    return [(one["metadata"]["name"], one["status"].get("conditions")) for one in listed["items"]]


def _made(access: Access, name: str, labels: Mapping[str, str] | None = None) -> bool:
    pod = {"metadata": {"name": name, "labels": dict(labels or {})}, "spec": {"schedulerName": "koord-scheduler", "containers": [{"name": "one", "image": "none"}]}}  # fmt: skip
    return access.request("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201
