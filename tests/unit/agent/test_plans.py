"""Plans as data: what strategies want written, and who decides where several want the same file."""

from typing import Any

import pytest

from koordpolicy.agent.hooks.container_writes import container_writes
from koordpolicy.agent.hooks.containers import GroupNumbers, HookedNumbers, PodNumbers, numbers_by_writer
from koordpolicy.agent.plan import BEST_EFFORT, Group, Level, Plan, Write, container_group, pod_group
from koordpolicy.agent.strategies.arbiter import settle
from koordpolicy.agent.strategies.cpu_burst import ContainerCPU, CPUBursts, PodCPU
from koordpolicy.agent.strategies.cpu_isolation import IsolatedCPU
from koordpolicy.agent.strategies.host_applications import (
    application_group,
    application_plan,
    host_applications,
)
from koordpolicy.agent.strategies.isolation import Isolations
from koordpolicy.agent.strategies.suppression_plan import plan as suppression_plan
from koordpolicy.agent.strategies.suppression_writes import suppression_writes
from koordpolicy.algorithms.cpu_burst import PoolState
from koordpolicy.algorithms.cpu_pools import CPUChoice, CPUPools, pools_of
from koordpolicy.algorithms.records import pods_on_node
from koordpolicy.language.facts import TIMES
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import QOS_CLASS, RESOURCE_STATUS
from koordpolicy.model.time import NANOSECONDS
from tests.unit.agent.nodes import NOW, decision, group, sight
from tests.vectors.policies import document, graph

QUOTA = "cpu.cfs_quota_us"
WEB = container_group("u", "web")


def write(strategy: str, value: Any, file: str = QUOTA, where: Group = WEB) -> Plan:
    return Plan((Write(file, where, value, "why", strategy),))


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        ("First", {"batch-resources": 5, "cpu-burst": 9}, ("cpu-burst", 9)),
        ("First", {"cpu-burst": 9, "batch-resources": 5}, ("cpu-burst", 9)),
        ("First", {"nobody-knows": 5, "system": 9}, ("system", 9)),
        ("Smallest", {"batch-resources": 5, "cpu-burst": 9}, ("batch-resources", 5)),
        ("Smallest", {"batch-resources": -1, "cpu-burst": 9}, ("cpu-burst", 9)),
        ("Largest", {"batch-resources": -1, "cpu-burst": 9}, ("batch-resources", -1)),
        ("Smallest", {"batch-resources": 9, "cpu-burst": 9}, ("cpu-burst", 9)),
        ("Largest", {"batch-resources": 9, "cpu-burst": 9}, ("cpu-burst", 9)),
        ("Smallest", {"cpuset": frozenset({1}), "cpu-suppress": frozenset({2})}, ("cpu-suppress", {2})),
    ],
)
def test_one_strategy_decides_about_a_file(rule: str, values: dict[str, Any], expected: Any) -> None:
    compiled = (
        graph(document("Arbitration", "ours", {"file": QUOTA, "rule": rule})) if rule != "First" else graph()
    )
    if rule != "First":
        order = ["cpu-suppress", "cpuset", "cpu-burst", "batch-resources"]
        compiled = graph(document("Arbitration", "ours", {"file": QUOTA, "rule": rule, "order": order}))
    found = settle(compiled, [write(name, value) for name, value in values.items()], {}, NOW)
    (kept,) = found.plan.writes
    assert (kept.strategy, kept.value) == expected
    differ = len(set(values.values())) > 1
    assert len(found.conflicts) == differ
    assert [one.winner for one in found.conflicts] == [expected[0]] * differ
    assert all(f"{QUOTA} of container u web: {expected[0]} goes before" in note for note in found.plan.notes)


def test_other_files_and_groups_are_nobody_elses_business() -> None:
    plans = [
        write("cpu-burst", 9),
        write("batch-resources", 5, where=pod_group("u")),
        write("system", 1, "x"),
    ]
    found = settle(graph(), plans, {}, NOW)
    assert len(found.plan.writes) == 3
    assert not found.conflicts


def test_who_holds_a_file_keeps_it_from_those_behind() -> None:
    held = Plan(holds={(QUOTA, WEB): "cpu-burst"})
    found = settle(graph(), [write("batch-resources", 5), held], {}, NOW)
    assert not found.plan.writes
    assert [one.losers for one in found.conflicts] == [["batch-resources"]]
    before = settle(graph(), [write("cpu-suppress", 5), held], {}, NOW)
    assert [one.strategy for one in before.plan.writes] == ["cpu-suppress"]


def test_suppression_shrinks_children_before_their_parents() -> None:
    decided = decision(graph(), sight())
    planned = suppression_plan(decided, group(current=frozenset({0, 1, 2, 3, 4})))
    found = suppression_writes(decided, planned, {"u": ["web"]})
    assert [one.group for one in found.writes] == [
        BEST_EFFORT,
        pod_group("u"),
        WEB,
        WEB,
        pod_group("u"),
        BEST_EFFORT,
    ]
    assert {one.file for one in found.writes} == {"cpuset.cpus"}
    assert all(len(one.value) == 3 for one in found.writes[3:] if isinstance(one.value, frozenset))
    assert found.writes[0].reason == "CPUSuppress: suppress to 3000m"


def test_containers_get_their_numbers_and_cpus() -> None:
    pools = pools_of({0: range(4), 1: range(4, 8)}, owned={1, 5}, exclusive={1}, kept={0})
    assert pools == CPUPools({0: "2-3", 1: "4,6-7"}, {0: "2-3", 1: "4-7"})
    numbers = PodNumbers(
        GroupNumbers(shares=2, quota=-1),
        {
            "web": GroupNumbers(cpus=CPUChoice.SHARED, oom_score=-5),
            "side": GroupNumbers(cpus=CPUChoice.INHERITED),
        },
    )
    hooked = HookedNumbers(numbers, {"batch-resources": numbers})
    found = container_writes(Pod("p", uid="u"), hooked, pools)
    assert [(one.file, one.group, one.value) for one in found.writes] == [
        ("cpu.shares", pod_group("u"), 2),
        (QUOTA, pod_group("u"), -1),
        ("cpuset.cpus", WEB, frozenset({2, 3, 4, 6, 7})),
        ("oom_score_adj", WEB, -5),
    ]
    unreadable = Pod("p", uid="u", annotations={RESOURCE_STATUS: "{"})
    moved = container_writes(unreadable, hooked, pools)
    assert "cpuset.cpus" not in {one.file for one in moved.writes}
    assert RESOURCE_STATUS in moved.notes[0]


def test_a_throttled_container_grows_step_by_step_and_holds_its_quota() -> None:
    compiled = graph(document("CPUBurst", "ours", {"policy": "auto"}))
    bursts = CPUBursts(compiled, lambda: 1.0)
    (record,) = pods_on_node([Pod("p", uid="u", phase="Running")], None, compiled.catalogue, TIMES)
    quota, seen = 100_000, []
    tokens: Any = {}
    for second in range(4):
        pod = PodCPU(record, quota, {"web": ContainerCPU(1000, quota, used=500, throttled=0.2)})
        plan, tokens = bursts.plan({}, [pod], PoolState.IDLE, tokens, NOW + second * NANOSECONDS)
        (own,) = [one.value for one in plan.writes if one.file == QUOTA and one.group == WEB]
        assert isinstance(own, int)
        quota = own
        seen.append(quota)
        assert plan.holds == {(QUOTA, WEB): "cpu-burst", (QUOTA, pod_group("u")): "cpu-burst"}
    assert seen == [120_000, 144_000, 172_800, 207_360]


def test_what_has_no_quota_yet_saves_nothing_up_and_raises_no_pods_quota() -> None:
    compiled = graph(document("CPUBurst", "ours", {"policy": "auto"}))
    (record,) = pods_on_node([Pod("p", uid="u", phase="Running")], None, compiled.catalogue, TIMES)
    cases: tuple[tuple[int, int, list[int], int, int], ...] = (
        (100_000, -1, [100_000], 0, 0),
        (-1, 100_000, [], 1_000_000, 0),
        (-1, -1, [100_000], 0, 0),
        (100_000, 100_000, [], 1_000_000, 1_000_000),
        (50_000, -1, [100_000, 100_000], 0, 0),
    )
    for of_pod, own, quotas, saved, together in cases:
        pod = PodCPU(record, of_pod, {"web": ContainerCPU(1000, own), "side": ContainerCPU(0, None)})
        plan, _tokens = CPUBursts(compiled, lambda: 1.0).plan({}, [pod], PoolState.IDLE, {}, NOW)
        written = [(one.value, one.group) for one in plan.writes if one.file == QUOTA]
        assert written == list(zip(quotas, (pod_group("u"), WEB)[-len(quotas) :], strict=False))
        found = {one.group: one.value for one in plan.writes if one.file == "cpu.cfs_burst_us"}
        assert (found[WEB], found[pod_group("u")]) == (saved, together)


def test_bursts_begin_at_the_quota_that_hooks_give() -> None:
    compiled = graph(document("CPUBurst", "ours", {"policy": "auto"}))
    (record,) = pods_on_node([Pod("p", uid="u", phase="Running")], None, compiled.catalogue, TIMES)
    bursts, quota = CPUBursts(compiled, lambda: 1.0), 60_000
    tokens: Any = {}
    for throttled, most in ((0.2, 180_000), (None, 180_000)):
        for second in range(9):
            container = ContainerCPU(1000, quota, used=500, throttled=throttled, sized=60_000)
            pod = PodCPU(record, quota, {"web": container})
            plan, tokens = bursts.plan({}, [pod], PoolState.IDLE, tokens, NOW + second * NANOSECONDS)
            own = [one.value for one in plan.writes if one.file == QUOTA and one.group == WEB]
            quota = own[0] if own and isinstance(own[0], int) else quota
        assert quota == most
    pod = PodCPU(record, quota, {"web": ContainerCPU(1000, quota, sized=60_000)})
    plan, _tokens = CPUBursts(graph(), lambda: 0.0).plan({}, [pod], PoolState.IDLE, {}, NOW)
    assert [one.value for one in plan.writes if one.file == QUOTA and one.group == WEB] == [60_000]


@pytest.mark.parametrize(
    ("annotations", "writer", "quota"),
    [({}, "cpu-normalization", 50_000), ({RESOURCE_STATUS: '{"cpuset": "1"}'}, "cpuset", -1)],
)
def test_the_arbiter_knows_hooks_by_what_they_do(
    annotations: dict[str, str], writer: str, quota: int
) -> None:
    limited = Container("web", limits={"cpu": 1000})
    pod = Pod(
        "p",
        uid="u",
        labels={QOS_CLASS: "LS"},
        kubernetes_qos="Burstable",
        annotations=annotations,
        containers=(limited,),
    )
    hooked = numbers_by_writer(
        graph(), pod, {"cpuNormalization": 2.0}, NOW, ("cpu-normalization", "owned-cpus")
    )
    found = settle(graph(), [container_writes(pod, hooked, CPUPools({0: "0-3"}))], {}, NOW).plan
    assert {(one.strategy, one.value) for one in found.writes if one.file == QUOTA} == {(writer, quota)}


def test_without_bursts_only_quotas_that_grew_are_reset() -> None:
    (record,) = pods_on_node([Pod("p", uid="u", phase="Running")], None, graph().catalogue, TIMES)
    bursts = CPUBursts(graph(), lambda: 0.0)
    for quota, written in ((120_000, [100_000]), (90_000, []), (-1, []), (100_000, [])):
        pod = PodCPU(record, -1, {"web": ContainerCPU(1000, quota)})
        plan, _tokens = bursts.plan({}, [pod], PoolState.IDLE, {}, NOW)
        assert [one.value for one in plan.writes if one.file == QUOTA] == written
        assert not plan.holds


APPLICATIONS = [
    ({"name": "db", "qos": "LS"}, Group(Level.HOST_APPLICATION, name="host-latency-sensitive/db"), 2),
    ({"name": "scan", "qos": "BE"}, Group(Level.HOST_APPLICATION, name="host-best-effort/scan"), -1),
    ({"name": "log"}, Group(Level.HOST_APPLICATION, name="log"), 0),
    (
        {"name": "x", "cgroupPath": {"base": "KubepodsBurstable", "parentDir": "a/", "relativePath": "/b"}},
        Group(Level.HOST_APPLICATION, "burstable", "a/b"),
        0,
    ),
]


def test_host_applications_are_placed_and_isolated_by_class() -> None:
    said = [one for one, _group, _value in APPLICATIONS]
    compiled = graph(
        document("HostApplicationSet", "ours", {"applications": said}),
        document("Isolation", "ls", {"group": "LS", "cpu": {"enabled": True, "identity": 2}}),
        document("Isolation", "be", {"group": "BE", "cpu": {"enabled": True, "identity": -1}}),
    )
    found = host_applications(compiled, {}, NOW)
    assert [application_group(one) for one in found] == [where for _one, where, _value in APPLICATIONS]
    isolation = IsolatedCPU(Isolations(compiled, {}, NOW))
    planned = application_plan(isolation, found, CPUPools({0: "0-3"}))
    identities = [one.value for one in planned.writes if one.file == "cpu.bvt_warp_ns"]
    assert identities == [value for _one, _group, value in APPLICATIONS]
    assert [one.value for one in planned.writes if one.file == "cpuset.cpus"] == [frozenset(range(4))]
