"""Managers as real processes on a real API server, and a node whose figures show what is decided."""

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.runtime.policies.lastgood import LastGood
from tests.conftest import REPOSITORY
from tests.parts.apiserver import SYSTEM_NAMESPACE, Access
from tests.parts.processes import Running, free_port

NODE = "node-1"
PATIENCE = 90.0
"""Seconds that anything may take on a busy machine."""

BUNDLE = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\n"
    "metadata: {name: fleet}\nspec: {extends: [koordinator]}\n"
)


def share(percentage: int) -> str:
    """A document that lets batch work fill a node to that percentage."""
    return (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: Overcommit\nmetadata: {name: share}\n"
        f"spec:\n  resource: batch\n  parameters: {{cpuReclaim: {percentage}%}}\n"
    )


BROKEN = share(30).replace("cpuReclaim", "noSuchParameter")


@dataclass
class Manager:
    """One process. `port` is where its status is."""

    running: Running
    port: int
    name: str

    def read(self, path: str) -> tuple[int, str]:
        """What its server answers; status 0 when it does not."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    @property
    def status(self) -> dict[str, Any]:
        code, text = self.read("/statusz?format=json")
        return dict(json.loads(text)) if code == 200 else {}

    @property
    def leads(self) -> bool:
        return bool(self.status.get("leader", {}).get("leading"))

    def metric(self, line: str) -> float | None:
        """The value of a metric by its name and labels as scraped."""
        found = [one for one in self.read("/metrics")[1].splitlines() if one.startswith(f"{line} ")]
        return float(found[0].rpartition(" ")[2]) if found else None


@dataclass
class Site:
    """A server with one node, a directory of policies, and managers that follow it."""

    access: Access
    folder: Path
    managers: list[Manager] = field(default_factory=list)

    @property
    def policies(self) -> Path:
        return self.folder / "policies"

    def write(self, name: str, text: str) -> None:
        """Put a file into the directory as an editor does."""
        draft = self.folder / "draft"
        draft.write_text(text, "utf-8")
        draft.replace(self.policies / name)

    def manager(self, name: str, *more: str, ready: bool = True) -> AbstractContextManager[Manager]:
        """A manager on the directory of policies; stopped at the end."""
        return self.process("manager", name, *more, ready=ready)

    @contextmanager
    def process(self, component: str, name: str, *more: str, ready: bool = True) -> Iterator[Manager]:
        """A component with its shipped role; stopped at the end."""
        port = free_port()
        command = [
            sys.executable, "-m", "koordpolicy.cli", component, *(() if "--policies-from-cluster" in more else ("--policies", str(self.policies))),
            "--kubeconfig", str(self.access.kubeconfig(f"koordpolicy-{component}")), "--instance", name,
            "--http", f"127.0.0.1:{port}", "--state-dir", str(self.folder / f"state-{name}"), *more,
        ]  # fmt: skip
        log = self.folder / f"{name}-{port}.log"
        with Running(command, log, environment={"PYTHONPATH": str(REPOSITORY)}) as running:
            manager = Manager(running, port, name)
            self.managers.append(manager)
            try:
                if ready:
                    running.ready(lambda: manager.read("/readyz")[0] == 200, PATIENCE)
                yield manager
            finally:
                self.managers.remove(manager)

    def keeps(self, name: str, text: str) -> bool:
        """Whether a manager has kept a file of this text for its next start, which happens beside its decisions."""
        kept = LastGood(self.folder / f"state-{name}").load()
        return kept is not None and text in kept.files.values()

    def offered(self) -> int | None:
        """Batch CPU that the node offers, in millicores."""
        _, node = self.access.request("GET", f"/api/v1/nodes/{NODE}")
        found = node.get("status", {}).get("allocatable", {}).get("kubernetes.io/batch-cpu")
        if found is None:
            return None
        return int(found) if found.isdecimal() else int(found.removesuffix("k")) * 1000

    def holder(self) -> str:
        """Who holds the lease."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/koordpolicy-manager"
        status, lease = self.access.request("GET", path)
        return str(lease["spec"].get("holderIdentity", "")) if status == 200 else ""

    def leases(self) -> set[str]:
        """The names of all leases of the components."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases"
        _, found = self.access.request("GET", path)
        return {one["metadata"]["name"] for one in found["items"]}

    def revisions(self) -> dict[str, dict[str, Any]]:
        """Each PolicyRevision by name: states of instances, status of conditions."""
        _, answer = self.access.request("GET", "/apis/koordpolicy.io/v1alpha1/policyrevisions")
        told = {}
        for one in answer["items"]:
            status = one.get("status") or {}
            told[one["metadata"]["name"]] = {
                "instances": {entry["name"]: entry["state"] for entry in status.get("instances", ())},
                "conditions": {entry["type"]: entry["status"] for entry in status.get("conditions", ())},
                "codes": [entry["code"] for entry in status.get("diagnostics", ())],
            }
        return told

    def eventually(self, question: Callable[[], object], what: str) -> float:
        """Wait until the question is answered with yes; how many seconds that took."""
        began = time.monotonic()
        while not question():
            if time.monotonic() - began > PATIENCE:
                logs = "\n".join(f"--- {one.name}\n{one.running.tail(20)}" for one in self.managers)
                pytest.fail(f"still not: {what}\n{logs}")
            time.sleep(0.02)
        return time.monotonic() - began


def make_site(access: Access, folder: Path) -> Site:
    """An idle node of 100 cores, and the built-in pack alone: 60 cores for batch work.

    What an earlier test left on the server goes first.
    """
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases"
    metrics = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
    revisions = "/apis/koordpolicy.io/v1alpha1/policyrevisions"
    for path in (f"/api/v1/nodes/{NODE}", f"{metrics}/{NODE}", lease, revisions):
        status, answer = access.request("DELETE", path)
        assert status in {200, 404}, answer
    here = Site(access, folder)
    here.policies.mkdir()
    here.write("koordpolicy.yaml", BUNDLE)
    capacity = {"cpu": "100", "memory": "100Gi", "pods": "110"}
    usage = {"resources": {"cpu": "0", "memory": "0"}}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    report = {"updateTime": now, "nodeMetric": {"nodeUsage": usage, "systemUsage": usage}}
    metric = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": NODE}}
    for method, path, body in (
        ("POST", "/api/v1/nodes", {"metadata": {"name": NODE}}),
        (
            "PATCH",
            f"/api/v1/nodes/{NODE}/status",
            {"status": {"capacity": capacity, "allocatable": capacity}},
        ),
        ("POST", metrics, {**metric, "spec": {}}),
        ("PATCH", f"{metrics}/{NODE}/status", {"status": report}),
    ):
        status, answer = access.request(method, path, body)
        assert status < 300, answer
    return here
