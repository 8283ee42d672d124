"""Pods that say by annotations what would harm others: CPUs of their own, scores that spare them from the OOM killer."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from koordpolicy.agent.explanation import node_explanation
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_strategies import cpu_pools
from koordpolicy.agent.owned_cpus import IGNORED, NONE_SHARED, owned_cpus_of
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import EVENTS
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.machine import FakeMachine, FakeTask, MachineSettings
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import KernelDoor
from koordpolicy.model.protocol import OOM_SCORE_ADJ, OOM_SCORE_ADJ_SPEC, RESOURCE_STATUS
from tests.contract.kernel.kernels import make_group
from tests.unit.agent.frames import LIMITS, SECOND, FakeNode, pod
from tests.unit.agent.nodes import NOW
from tests.unit.agent.test_whole_agent import GIB, GROUPS, PLAIN, PODS_OF
from tests.unit.agent.whole import whole_agent
from tests.vectors.policies import document, graph

BEST_EFFORT = "kubepods/besteffort/cpuset.cpus"
WEB = f"{GROUPS['web']}/cpuset.cpus"
OTHER = f"{GROUPS['other']}/cpuset.cpus"
ALL = frozenset(range(4))


def claim(cpus: str) -> dict[str, str]:
    return {RESOURCE_STATUS: json.dumps({"cpuset": cpus})}


def told_by(
    changed: str, annotations: dict[str, str], labels: dict[str, str], *documents: Any, dry_run: bool = True
) -> tuple[dict[str, Any], dict[str, Any], Sequence[str]]:
    """The files that a whole agent wants on four CPUs, its troubles, and the reasons of its Events, where one pod says that."""
    pods = json.loads(json.dumps(list(PODS_OF.values())))
    for one in pods:
        if one["metadata"]["name"] == changed:
            one["metadata"].setdefault("annotations", {}).update(annotations)
            one["metadata"]["labels"].update(labels)
    root = FakeRoot(CgroupVersion.V1, extra=PLAIN)
    machine = FakeMachine(root, MachineSettings(memory=8 * GIB, reserve=1 << 20, step=100_000_000))
    hierarchy = discover_hierarchy(root)
    for pid, group in enumerate(GROUPS.values(), 7):
        above = group.split("/")
        for depth in range(1, len(above) + 1):
            make_group(root, hierarchy, "/".join(above[:depth]))
        machine.start(FakeTask(pid, group, demand=1.0, memory=GIB))
    door = KernelDoor(root, hierarchy, lambda: NOW, LIMITS, WriteLog(100), plan_only=dry_run)
    cluster = MemoryCluster(Store(lambda: NOW / SECOND))

    async def story() -> tuple[dict[str, Any], dict[str, Any], Sequence[str]]:
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        kernel = NodeKernel(root, hierarchy, door)
        async with whole_agent(
            graph(*documents), kernel, cluster, pods, capacity=capacity, dry_run=dry_run
        ) as agent:
            agent.doing.began = 0
            for _ in range(2):
                agent.collect()
                machine.advance(SECOND // 5)
            frame = agent.frame()
            assert frame is not None
            for _ in range(2):  # what lasts is told once
                await agent.carry_out(agent.strategies, frame)
            writer = asyncio.create_task(agent.component.recorder.run())
            async with asyncio.timeout(30):
                await agent.component.recorder.flush()
            writer.cancel()
            events = await cluster.list(EVENTS)
            found = node_explanation(agent, frame)
            files = {one["file"]: one["wanted"] for one in found["files"]}
            return files, dict(agent.status()["troubles"]), [one["reason"] for one in events.items]

    return asyncio.run(story())


def ending(files: dict[str, Any], end: str) -> Any:
    return next((wanted for file, wanted in files.items() if file.endswith(end)), None)


@pytest.mark.parametrize("label", ["BE", "LSR", "LSE"])
@pytest.mark.parametrize("cpus", ["0-2", "0-3"])
def test_best_effort_pods_take_no_cpus_from_others_whatever_class_they_name(label: str, cpus: str) -> None:
    base, _, _ = told_by("other", {}, {})
    assert ending(base, WEB) == "0-3" and ending(base, BEST_EFFORT)
    files, troubles, _ = told_by("other", claim(cpus), {"koordinator.sh/qosClass": label})
    assert {file: wanted for file, wanted in files.items() if file.endswith("cpuset.cpus")} == {
        file: wanted for file, wanted in base.items() if file.endswith("cpuset.cpus")
    }
    assert "default/other" in troubles["cpus default/other"]


def test_a_pod_that_says_what_does_not_hold_is_told_so_once() -> None:
    _, _, events = told_by("other", claim("0-2"), {}, dry_run=False)
    assert events.count(IGNORED) == 1 and NONE_SHARED not in events


def test_a_pod_of_a_class_with_cpus_of_its_own_has_them() -> None:
    files, troubles, _ = told_by("web", claim("0-2"), {"koordinator.sh/qosClass": "LSE"})
    assert ending(files, WEB) == "0-2"
    assert ending(files, BEST_EFFORT) == "3"
    assert not [name for name in troubles if name.startswith("cpus")]


def test_suppression_goes_on_where_a_pod_has_all_cpus_alone() -> None:
    files, troubles, events = told_by("web", claim("0-3"), {"koordinator.sh/qosClass": "LSE"}, dry_run=False)
    assert ending(files, BEST_EFFORT)
    assert "default/web" in troubles["cpus shared"]
    assert events.count(NONE_SHARED) == 1 and IGNORED not in events


def owning(name: str, qos: str, cpus: str, **more: Any) -> Any:
    return pod(name, qos, annotations=claim(cpus), **more)


def shares(
    *pods: Any, free: frozenset[int] = ALL, rules: RuleGraph | None = None
) -> tuple[set[int], set[int]]:
    """Which of four CPUs pods share, and best-effort work may use."""
    found = owned_cpus_of(rules or graph(), FakeNode(pods).node_pods(), free)
    assert (NONE_SHARED in {one.reason for one in found.claims.values()}) == (
        found.unshared != found.exclusive | found.bound
    ) or not found.exclusive
    return set(free - found.unshared), set(free - found.exclusive)


def test_what_is_shared_never_becomes_empty() -> None:
    assert shares(owning("a", "LSR", "0-1")) == ({2, 3}, {0, 1, 2, 3})
    assert shares(owning("a", "LSE", "0-1"), owning("b", "LSR", "2")) == ({3}, {2, 3})
    assert shares(owning("a", "LSE", "0-1"), owning("b", "LSR", "2-3")) == ({2, 3}, {2, 3})
    assert shares(owning("a", "LSR", "0-3")) == ({0, 1, 2, 3}, {0, 1, 2, 3})
    assert shares(owning("a", "LSE", "0-3"), owning("b", "LSR", "3")) == ({0, 1, 2}, {0, 1, 2, 3})
    assert shares(owning("a", "LSE", "0-3"), owning("b", "LSR", "0-9")) == ({0, 1, 2, 3}, {0, 1, 2, 3})
    assert shares(owning("a", "LSE", "0-1"), free=frozenset({0, 1})) == ({0, 1}, {0, 1})
    assert shares(owning("a", "LSE", "0-1"), free=frozenset()) == (set(), set())


def test_who_owns_cpus_is_a_matter_of_policy() -> None:
    assert shares(owning("a", "LS", "0-1")) == (set(ALL), set(ALL))
    bound = graph(document("QoSClass", "ls", {"cpuBinding": "Exclusive"}))
    assert shares(owning("a", "LS", "0-1"), rules=bound) == ({2, 3}, {2, 3})
    shared = graph(document("QoSClass", "lse", {"cpuBinding": "Shared"}))
    assert shares(owning("a", "LSE", "0-1"), rules=shared) == (set(ALL), set(ALL))


def test_pods_without_a_label_own_cpus_by_the_class_of_their_kubernetes_class() -> None:
    unlabelled = {"labels": {}, "kubernetes_qos": "Guaranteed"}
    assert shares(owning("a", "LSR", "0-1", **unlabelled)) == ({2, 3}, set(ALL))
    unlabelled["kubernetes_qos"] = "Burstable"
    assert shares(owning("a", "LSR", "0-1", **unlabelled)) == (set(ALL), set(ALL))


def test_reserved_cpus_are_nothing_that_is_left_to_share() -> None:
    node = FakeNode([owning("a", "LSE", "0-17")])
    pools = cpu_pools(node.frame(graph(), reserved_cpus=frozenset({18, 19})))
    assert "".join(pools.shared.values()) and not {"18", "19"} & set(
        ",".join(pools.shared.values()).split(",")
    )


@pytest.mark.parametrize("annotation", [{OOM_SCORE_ADJ: "-1000"}, {OOM_SCORE_ADJ_SPEC: '{"main":-1000}'}])
def test_no_best_effort_pod_is_spared_by_the_oom_killer(annotation: dict[str, str]) -> None:
    files, _, _ = told_by("other", annotation, {})
    assert files["/proc/9/oom_score_adj"] == 0
    everything = document("ContainerHook", "oom-scores", {"parameters": {"leastOfBestEffort": -1000}})
    files, _, _ = told_by("other", annotation, {}, everything)
    assert files["/proc/9/oom_score_adj"] == -1000


def test_a_burstable_pod_goes_no_further_than_kubelets_let_it() -> None:
    files, _, _ = told_by("web", {OOM_SCORE_ADJ: "-1000"}, {})
    assert files["/proc/7/oom_score_adj"] == 3
