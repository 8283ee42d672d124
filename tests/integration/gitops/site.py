"""A cluster that takes its policies as objects: a real API server, our manager, and a node whose figures show what is decided."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.parts.apiserver import Access
from tests.parts.controllers import controller_manager
from tests.parts.deployed import DeployedServer, apply
from tests.parts.processes import Running

POLICIES = "/apis/koordpolicy.io/v1alpha1"
SERVER = ("etcd", "kube-apiserver", "kube-controller-manager")
"""The parts of a site."""

NODE = "node-1"
PATIENCE = 120.0
"""Seconds that anything may take on a busy machine."""

BUILT_IN_SHARE = 60_000
"""Batch CPU of the node, in millicores, by the built-in pack: 60 % of 100 idle cores."""


def share(percentage: int, name: str = "share") -> str:
    """A policy that lets batch work fill a node to that percentage."""
    return policy(name, f"parameters: {{cpuReclaim: {percentage}%}}")


def policy(name: str, field: str) -> str:
    """A document on batch resources with one more field in its spec."""
    return (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: Overcommit\n"
        f"metadata:\n  name: {name}\nspec:\n  resource: batch\n  {field}\n"
    )


BROKEN = policy("share", "parameters: {noSuchParameter: 1%}")
"""Well-formed, as the API server sees it; no parameter of batch resources is called so."""
BROKEN_CODE = "KP305"


@dataclass(frozen=True, slots=True)
class Site:
    """The cluster. `programs` run beside the server: when one ends, waiting ends with its log."""

    access: Access
    folder: Path
    programs: list[Running] = field(default_factory=list)

    def run(self, arguments: Sequence[str | Path], name: str, **environment: str) -> Running:
        """Start a program of this site; the caller stops it."""
        running = Running(
            arguments, self.folder / f"{name}.log", environment=environment or None, folder=self.folder
        )
        self.programs.append(running)
        return running

    def get(self, path: str) -> dict[str, Any] | None:
        """An object, None where there is none."""
        status, answer = self.access.request("GET", path)
        assert status in {200, 404}, answer
        return answer if status == 200 else None

    def send(self, method: str, path: str, body: object = None) -> Any:
        """A request that must succeed."""
        status, answer = self.access.request(method, path, body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return answer

    def policy(self, name: str = "share") -> dict[str, Any] | None:
        """A policy object on overcommitment."""
        return self.get(f"{POLICIES}/overcommits/{name}")

    def offered(self) -> int | None:
        """Batch CPU that the node offers, in millicores: what the policies in force decide."""
        node = self.get(f"/api/v1/nodes/{NODE}") or {}
        found = node.get("status", {}).get("allocatable", {}).get("kubernetes.io/batch-cpu")
        return (
            None
            if found is None
            else int(found)
            if found.isdecimal()
            else int(found.removesuffix("k")) * 1000
        )

    def eventually(self, question: Callable[[], object], what: str) -> None:
        """Wait until the question is answered with yes."""
        until = time.monotonic() + PATIENCE
        while not question():
            ended = [program for program in self.programs if not program.running]
            if ended or time.monotonic() > until:
                logs = "\n".join(
                    f"--- {program.name}\n{program.tail(15)}" for program in ended or self.programs
                )
                pytest.fail(f"still not: {what}; policies: {self.summary()}\n{logs}")
            time.sleep(0.2)

    def summary(self) -> str:
        """The policy objects and what their conditions say, for failures."""
        _, answer = self.access.request("GET", f"{POLICIES}/overcommits")
        return "; ".join(f"{one['metadata']['name']}: {conditions(one)}" for one in answer["items"]) or "none"


def conditions(obj: Mapping[str, Any] | None) -> dict[str, str]:
    """Condition type -> status, of an object as it stands; nothing while its status speaks of an older one."""
    if (
        obj is None
        or "status" not in obj
        or obj["status"].get("observedGeneration") != obj["metadata"]["generation"]
    ):
        return {}
    return {one["type"]: one["status"] for one in obj["status"].get("conditions", ())}


def message(obj: Mapping[str, Any] | None, condition: str) -> str:
    """The message of a condition, "" without one."""
    found = (obj or {}).get("status", {}).get("conditions", ())
    return next((one["message"] for one in found if one["type"] == condition), "")


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Start everything; the node shows what the built-in pack decides when this returns."""
    with DeployedServer(folder / "apiserver") as server, ExitStack() as stack:
        here = Site(server.access, folder)
        _make_node(here)
        # A cluster without any policy object counts as one whose policies are not there yet.
        bundle = {
            "apiVersion": "koordpolicy.io/v1alpha1",
            "kind": "PolicyBundle",
            "metadata": {"name": "cluster"},
        }
        apply(server.access, [{**bundle, "spec": {"extends": ["koordinator"]}}])
        command = [
            sys.executable, "-m", "koordpolicy.cli", "manager", "--policies-from-cluster", "--http=off",
            f"--kubeconfig={server.kubeconfig('koordpolicy-manager')}", "--no-leader-elect", "--instance=gitops",
        ]  # fmt: skip
        # Argo CD's deletions wait for the garbage collector.
        here.programs.append(stack.enter_context(controller_manager(server.access)))
        with here.run(command, "manager", PYTHONPATH=str(Path(__file__).resolve().parents[3])):
            here.eventually(
                lambda: here.offered() == BUILT_IN_SHARE, "the node offers what the built-in pack says"
            )
            yield here


def _make_node(here: Site) -> None:
    capacity = {"cpu": "100", "memory": "100Gi", "pods": "110"}
    here.send("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    here.send(
        "PATCH", f"/api/v1/nodes/{NODE}/status", {"status": {"capacity": capacity, "allocatable": capacity}}
    )
    metrics = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
    made = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": NODE}}
    here.send("POST", metrics, {**made, "spec": {}})
    usage = {"resources": {"cpu": "0", "memory": "0"}}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"updateTime": now, "nodeMetric": {"nodeUsage": usage, "systemUsage": usage}}
    here.send("PATCH", f"{metrics}/{NODE}/status", {"status": status})
