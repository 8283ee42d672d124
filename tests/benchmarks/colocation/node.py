"""The node of the experiments: its object on a real API server, and `koordpolicy agent` in a pod of its own on it."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.colocation import kubelet
from tests.benchmarks.colocation.pods import BenchPod, Groups
from tests.benchmarks.measure import as_installed
from tests.conftest import REPOSITORY
from tests.parts.apiserver import Access
from tests.parts.deployed import install
from tests.parts.processes import Running

NODE: Final = "bench"
_AGENT_SHARES: Final = 51
"""Of the agent's own pod: the request of `deploy/agent`, 50m."""
_BUNDLE: Final = "kind: PolicyBundle\nmetadata: {name: bench}\nspec: {extends: [koordinator]}\n"


class BenchNode:
    """This machine as a node of a cluster."""

    def __init__(self, access: Access, groups: Groups, folder: Path) -> None:
        self.access = access
        self.groups = groups
        self.memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._folder = folder
        install(access)
        there = {"cpu": f"{os.cpu_count()}", "memory": f"{self.memory}", "pods": "110"}
        self._post("/api/v1/nodes", {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
            "status": {"capacity": there, "allocatable": there},
        })  # fmt: skip
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self.access.request("POST", "/api/v1/namespaces/default/serviceaccounts", account)

    def create(self, pod: BenchPod) -> BenchPod:
        """The pod on the API server, running; with the UID that it has there."""
        class_of = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": f"p{pod.priority}"},
        }
        self.access.request(
            "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {**class_of, "value": pod.priority}
        )
        body = pod.object(NODE)
        del body["spec"]["priority"]  # the API server's own admission sets it
        made = self._post("/api/v1/namespaces/default/pods", body)
        found = pod.with_uid(made["metadata"]["uid"])
        status, answer = self.access.request(
            "PATCH", f"{_path(pod)}/status", {"status": found.object(NODE)["status"]}
        )
        assert status == 200, answer
        return found

    def is_leaving(self, pod: BenchPod) -> bool:
        """Whether somebody has had the pod evicted or deleted."""
        status, answer = self.access.request("GET", _path(pod))
        return status == 404 or "deletionTimestamp" in answer["metadata"]

    def remove(self, pod: BenchPod) -> None:
        """End the pod's processes, as a kubelet does, and its object."""
        self.groups.kill(pod)
        self.access.request(
            "DELETE", _path(pod), {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        )

    @contextmanager
    def with_agent(
        self, name: str, pods: Sequence[BenchPod], documents: Sequence[str] | None
    ) -> Iterator[None]:
        """Groups of these pods, and an agent beside them with the pack and these documents; None for no agent."""
        agent = BenchPod("agent", "Burstable", _AGENT_SHARES, labels={"koordinator.sh/qosClass": "SYSTEM"})
        folder = self._folder / name.replace(" ", "-")
        with self.groups.of([*pods, agent]):
            if documents is None:
                yield
                return
            policies = folder / "policies"
            policies.mkdir(parents=True)
            for number, text in enumerate([_BUNDLE, *documents]):
                file = policies / ("koordpolicy.yaml" if number == 0 else f"{number}.yaml")
                file.write_text(f"apiVersion: koordpolicy.io/v1alpha1\n{text}", "utf-8")
            with kubelet.serving([*pods, agent], NODE) as url:
                command = [
                    sys.executable, "-m", "koordpolicy.cli", "agent", "--policies", str(policies), "--node", NODE,
                    "--kubeconfig", str(self.access.kubeconfig("koordpolicy-agent")), "--http", "off", "--kubelet-url", url,
                ]  # fmt: skip
                environment = {**as_installed(), "PYTHONPATH": str(REPOSITORY)}
                inside = self.groups.inside(agent, command)
                with Running(inside, folder / "log", environment=environment) as process:
                    process.ready(lambda: "is active" in process.tail())
                    yield

    def _post(self, path: str, body: Any) -> Any:
        status, answer = self.access.request("POST", path, body)
        assert status == 201, answer
        return answer


def _path(pod: BenchPod) -> str:
    return f"/api/v1/namespaces/default/pods/{pod.name}"
