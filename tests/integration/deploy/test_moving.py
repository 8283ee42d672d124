"""`deploy/moving/README.md`, walked on a real API server: its commands print what it shows.

No kubelet starts what Deployments say here, so the walk does: after each command koord-manager and our manager run where
their Deployments want them. The stock koord-manager takes longer to build than the suite has, so it is used where `PATH` has
one. Everywhere else its objects stand for it: nodes as it was seen to write them, and a configuration of webhooks that nobody
answers; commands about what its webhooks make of a pod are left out then.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, SWITCH
from tests.parts.apiserver import Access, ApiServer
from tests.parts.deployed import DEPLOY, apply, manifests
from tests.parts.fixtures import need
from tests.parts.processes import Running, free_port

PAGE = DEPLOY / "moving" / "README.md"
NAMESPACE = "koordinator-system"
SEEN = {"node-1": ("69k", "79Gi"), "node-2": ("43800", "79Gi")}
"""What koord-manager (2026-07) writes for the nodes below: batch CPU and memory."""

PATIENCE = 90.0
_CONSOLE = re.compile(r"^```console\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_VOLATILE = re.compile(r"sha256:[0-9a-f]{12}|(?<=koordinator/)(\S+?):\d+:\d+")
_ITS_WEBHOOKS = ("theirs.json", "both.json", "ours.json", "back.json")


def objects() -> Iterator[dict[str, Any]]:
    """A cluster with a stock Koordinator, but for its nodes."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    for name, value in (("koord-prod", 9000), ("koord-batch", 5000)):
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        yield {**kind, "metadata": {"name": name}, "value": value}
    config = {"enable": True, "cpuReclaimThresholdPercent": 70, "memoryReclaimThresholdPercent": 80}
    threshold = {"clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 60}}
    data = {"colocation-config": json.dumps(config), "resource-threshold-config": json.dumps(threshold)}
    yield config_map("slo-controller-config", data)
    scheduler = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": "koord-scheduler",
                "pluginConfig": [
                    {"name": "LoadAwareScheduling", "args": {"usageThresholds": {"cpu": 55, "memory": 90}}}
                ],
                "plugins": {"filter": {"enabled": [{"name": "LoadAwareScheduling"}]}},
            }
        ],
    }
    yield config_map("koord-scheduler-config", {"koord-scheduler-config": json.dumps(scheduler)})
    labels = {"koord-app": "koord-manager"}
    pod = {"containers": [{"name": "manager", "image": "koord-manager"}]}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "koord-manager", "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    for phase, path in (("Mutating", "/mutate-pod"), ("Validating", "/validate-pod")):
        service = {"name": "koordinator-webhook-service", "namespace": NAMESPACE, "path": path}
        webhook = {
            "name": "mpod-create.koordinator.sh" if phase == "Mutating" else "vpod.koordinator.sh",
            "clientConfig": {"service": service},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ],
        }
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{phase}WebhookConfiguration",
            "metadata": {"name": f"koordinator-{phase.lower()}-webhook-configuration"},
            "webhooks": [webhook],
        }
    yield {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": "etl"},
        "spec": {
            "selector": {"matchLabels": {"team": "etl"}},
            "qosClass": "BE",
            "priorityClassName": "koord-batch",
        },
    }
    yield {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "etl", "namespace": "default"},
        "spec": {"max": {"cpu": "40", "memory": "40Gi"}, "min": {"cpu": "10", "memory": "10Gi"}},
    }


def config_map(name: str, data: Mapping[str, str]) -> dict[str, Any]:
    """A ConfigMap of Koordinator."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": data,
    }


@dataclass
class Walk:
    """The cluster, a shell of whoever walks, and the programs that Deployments want. `stock` is koord-manager, or None."""

    access: Access
    folder: Path
    environment: Mapping[str, str]
    stock: Path | None
    running: dict[str, Running] = field(default_factory=dict)

    def send(self, method: str, path: str, body: object = None) -> Any:
        """A request that must succeed."""
        status, answer = self.access.request(method, path, body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def eventually(self, question: Callable[[], object], what: str) -> None:
        """Wait until the question is answered with yes."""
        until = time.monotonic() + PATIENCE
        while not question():
            logs = "\n".join(f"--- {name}\n{one.tail(15)}" for name, one in self.running.items())
            assert time.monotonic() < until, f"still not: {what}\n{logs}"
            time.sleep(0.1)

    def nodes(self) -> None:
        """Two idle nodes with reports, as koord-manager finds or has left them."""
        usage = {"resources": {"cpu": "5", "memory": "10Gi"}}
        system = {"resources": {"cpu": "1", "memory": "1Gi"}}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        report = {"updateTime": now, "nodeMetric": {"nodeUsage": usage, "systemUsage": system}}
        metrics = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
        for name, cpu in (("node-1", "100"), ("node-2", "64")):
            capacity = {"cpu": cpu, "memory": "100Gi", "pods": "110"}
            if self.stock is None:
                offered = dict(zip(("batch-cpu", "batch-memory"), SEEN[name], strict=True))
                capacity.update({f"kubernetes.io/{key}": value for key, value in offered.items()})
            self.send("POST", "/api/v1/nodes", {"metadata": {"name": name}})
            status = {"status": {"capacity": capacity, "allocatable": capacity}}
            self.send("PATCH", f"/api/v1/nodes/{name}/status", status)
            made = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric"}
            self.send("POST", metrics, {**made, "metadata": {"name": name}, "spec": {}})
            self.send("PATCH", f"{metrics}/{name}/status", {"status": report})

    def offered(self) -> dict[str, tuple[str, str]]:
        """What nodes offer: batch CPU and memory."""
        found = {}
        for name in SEEN:
            allocatable = self.send("GET", f"/api/v1/nodes/{name}")["status"]["allocatable"]
            found[name] = tuple(
                allocatable.get(f"kubernetes.io/batch-{one}", "") for one in ("cpu", "memory")
            )
        return found

    def command(self, line: str) -> str:
        """What a command prints; none may fail but one that says how it ended."""
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", f"{line}"],
            cwd=self.folder / "shell",
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        self.reconcile()
        printed = "".join(f"{one.rstrip()}\n" for one in ran.stdout.splitlines())
        # `import` says by 6 that something was left out, `doctor` by 1 that something is wrong.
        assert ran.returncode in {0, 6}, f"{line}\n{printed}"
        return _VOLATILE.sub(lambda found: f"{found[1]}:..." if found[1] else "sha256:...", printed)

    def wants(self, namespace: str, name: str) -> bool:
        """Whether a Deployment is there and has replicas."""
        status, found = self.access.request("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
        return status == 200 and found["spec"]["replicas"] > 0

    def reconcile(self) -> None:
        """Run what Deployments want, end what they do not; wait until it answers."""
        if self.stock is not None:
            self._keep(
                "koord-manager",
                NAMESPACE,
                "koord-manager",
                self._start_stock,
                "koordinator-mutating-webhook-configuration",
            )
        self._keep("ours", "koordpolicy-system", "koordpolicy-manager", self._start_ours, "koordpolicy")

    def _keep(
        self, key: str, namespace: str, deployment: str, start: Callable[[], Running], webhooks: str
    ) -> None:
        wanted = self.wants(namespace, deployment)
        if wanted and key not in self.running:
            self.running[key] = start()
        if not wanted and key in self.running:
            self.running.pop(key).stop(30)
        if wanted:
            place = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{webhooks}"

            def answered() -> bool:
                found = self.access.request("GET", place)[1].get("webhooks") or ()
                if not self.running[key].running:
                    pytest.fail(f"{key} ended:\n{self.running[key].tail(40)}")
                return any(one["clientConfig"].get("caBundle") for one in found)

            if self.access.request("GET", place)[0] == 200:
                self.eventually(answered, f"{key} answers webhooks")

    def _start_stock(self) -> Running:
        assert self.stock is not None
        folder = self.folder / f"certificates-{time.monotonic_ns()}"
        folder.mkdir()
        command: list[str | Path] = [
            self.stock, f"--kubeconfig={self.access.kubeconfig('admin')}", "--enable-leader-election=false",
            "--metrics-addr=127.0.0.1:0", "--health-probe-addr=127.0.0.1:0", "--enable-pprof=false",
            f"--config-namespace={NAMESPACE}", "--sync-period=0", "--logtostderr=true",
        ]  # fmt: skip
        environment = {
            "WEBHOOK_HOST": "127.0.0.1",
            "WEBHOOK_PORT": str(free_port()),
            "WEBHOOK_CERT_DIR": str(folder),
            "POD_NAMESPACE": NAMESPACE,
            "WEBHOOK_CONFIGURATION_FAILURE_POLICY_PODS": "Ignore",
        }
        return Running(command, self.folder / "koord-manager.log", environment=environment)

    def _start_ours(self) -> Running:
        port = free_port()
        command = [
            sys.executable, "-m", "koordpolicy.cli", "manager", "--policies-from-cluster", "--http=off",
            f"--kubeconfig={self.access.kubeconfig('koordpolicy-manager')}", "--instance=moving", "--webhook-drain=1s",
            f"--webhook=127.0.0.1:{port}", f"--webhook-url=https://localhost:{port}",
        ]  # fmt: skip
        return Running(command, self.folder / "ours.log", environment={"PYTHONPATH": str(REPOSITORY)})


@pytest.fixture(params=["objects", "koord-manager"])
def walk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Walk]:
    """The cluster before the first step."""
    kubectl, helm, *_ = need(request.config, "kubectl", "helm", "etcd", "kube-apiserver")
    stock = None
    if request.param == "koord-manager":
        found = shutil.which("koord-manager")
        if found is None:
            pytest.skip("koord-manager is not on PATH: `go build` it from a checkout of Koordinator")
        stock = Path(found)
    programs = tmp_path / "programs"
    programs.mkdir()
    wrapper = programs / "koordpolicy"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m koordpolicy.cli "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    (tmp_path / "shell").mkdir()
    with ApiServer(tmp_path / "server") as server, ExitStack() as stack:
        environment = {
            **os.environ,
            "PATH": os.pathsep.join(
                (str(programs), str(kubectl.parent), str(helm.parent), os.environ["PATH"])
            ),
            "PYTHONPATH": str(REPOSITORY),
            "HOME": str(tmp_path),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            SWITCH: "on",
            "KUBECONFIG": str(server.access.kubeconfig("admin")),
            "KOORDPOLICY": str(REPOSITORY),
        }
        theirs = [one for one in manifests(DEPLOY / "crds") if one["spec"]["group"] != "koordpolicy.io"]
        apply(server.access, theirs)
        apply(server.access, objects())
        made = Walk(server.access, tmp_path, environment, stock)
        stack.callback(lambda: [one.stop(10) for one in made.running.values()])
        made.nodes()
        made.reconcile()
        made.eventually(lambda: made.offered() == SEEN, "nodes offer what Koordinator makes them offer")
        yield made


@pytest.mark.soak
def test_the_page_is_walked(walk: Walk, request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")

    def played(block: re.Match[str]) -> str:
        shown = []
        for part in re.split(r"^(?=\$ )", block["body"], flags=re.MULTILINE):
            if not part:
                continue
            line = part.splitlines()[0]
            if walk.stock is None and any(one in line for one in _ITS_WEBHOOKS):
                shown.append(part)
            else:
                shown.append(f"{line}\n{walk.command(line.removeprefix('$ '))}")
            assert walk.offered() == SEEN, f"nodes offer something else after {line}"
        return f"```console\n{''.join(shown)}```"

    shown = _CONSOLE.sub(played, text)
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(shown, encoding="utf-8")
    else:
        assert shown == text
