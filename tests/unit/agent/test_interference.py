"""Interference: when a rule holds of a pod for long enough, and what it wants then; and limits of disks."""

from typing import Any

import pytest

from koordpolicy.agent.plan import BEST_EFFORT
from koordpolicy.agent.strategies.disk_isolation import ROOT_GROUP, IsolatedDisks
from koordpolicy.agent.strategies.interference import (
    InterferenceMemory,
    PodSignals,
    Reaction,
    eviction_needs,
    reactions,
    suppressed_more,
)
from koordpolicy.agent.strategies.isolation import Isolations
from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import QOS_CLASS
from koordpolicy.model.time import NANOSECONDS
from tests.unit.agent.nodes import NOW, decision, record, sight
from tests.vectors.policies import document, graph

WEB = ("default", "web", "")
WAITS = {"cel": "has(pod.pressure.cpu.some) && pod.pressure.cpu.some > percent(20)"}


def rounds(*pressure: float | None, **spec: Any) -> list[tuple[int, float]]:
    """How many pods suffer and what share is wanted, each second; None for a second without a measurement."""
    compiled = graph(
        document(
            "Interference",
            "ours",
            {"when": WAITS, "reaction": "SuppressBestEffort", "share": "10%", **spec},
        )
    )
    node, memory, found = record(compiled, sight()), InterferenceMemory(), []
    for second, value in enumerate(pressure):
        signals = {} if value is None else {WEB: PodSignals({("cpu", "some"): value})}
        wanted, memory = reactions(compiled, node, signals, memory, NOW + second * NANOSECONDS)
        found.append((sum(len(one.pods) for one in wanted), sum(one.share for one in wanted)))
    return found


@pytest.mark.parametrize(
    ("pressure", "spec", "expected"),
    [
        ((10.0, 30.0), {}, [(0, 0.0), (1, 10.0)]),
        ((30.0, 30.0, 30.0), {"after": "2s"}, [(0, 0.0), (0, 0.0), (1, 10.0)]),
        ((30.0, 10.0, 30.0), {"after": "2s"}, [(0, 0.0), (0, 0.0), (0, 0.0)]),
        ((30.0, None, 30.0), {"after": "2s"}, [(0, 0.0), (0, 0.0), (0, 0.0)]),
        ((30.0, 10.0, 10.0), {"lasts": "2s"}, [(1, 10.0), (0, 10.0), (0, 0.0)]),
        ((30.0,), {"enabled": False}, [(0, 0.0)]),
        ((30.0,), {"when": {"cel": "pod.cpi > 2.0"}}, [(0, 0.0)]),  # not measured: nothing is done
    ],
)
def test_a_rule_holds_as_long_as_policy_says(
    pressure: tuple[float | None, ...], spec: dict[str, Any], expected: list[tuple[int, float]]
) -> None:
    assert rounds(*pressure, **spec) == expected


def test_suppression_leaves_so_much_less() -> None:
    decided = decision(graph(), sight())
    wanted = [
        Reaction("a", "SuppressBestEffort", 5.0, [WEB]),
        Reaction("b", "SuppressBestEffort", 10.0, [WEB]),
        Reaction("c", "Report", 50.0, [WEB]),
    ]
    assert suppressed_more(decided, wanted, 20_000).target == decided.target - 2_000
    assert suppressed_more(decided, wanted[2:], 20_000) == decided
    kept = decision(graph(), sight(age=60))
    assert suppressed_more(kept, wanted, 20_000) == kept


def test_one_best_effort_pod_goes_that_uses_cpu() -> None:
    pods = [Pod(name, labels={QOS_CLASS: "BE"}, phase="Running") for name in ("idle", "busy", "unseen")]
    used = {"idle": 0, "busy": 900}
    metric = NodeMetric(
        "n",
        updated_at=NOW,
        pods=tuple(PodMetric("default", name, {"cpu": one}) for name, one in used.items()),
    )
    node = record(graph(), NodeSight(Node("n"), pods, metric))
    wanted = [Reaction("ours", "EvictBestEffort", 0.0, [WEB])]
    (task,) = eviction_needs(graph(), node, wanted, NOW).tasks
    assert (task.reason, list(task.pods)) == ("Interference/ours", [("default", "busy", "")])
    assert not eviction_needs(graph(), node, [Reaction("ours", "EvictBestEffort", 0.0, [])], NOW).tasks


BLOCKS = [{"name": "/dev/sda", "type": "device", "readIOPS": 100, "ioWeightPercent": 60, "readLatency": 500}]


def disks(listed: dict[str, set[str]], number: str | None = "8:0", *, on: bool = True) -> Any:
    said = {"disk": {"enabled": on}, "blocks": BLOCKS}
    compiled = graph(
        document("Isolation", "be", {"group": "BE", **said}),
        document("Isolation", "root", {"group": "root", **said}),
    )
    plan = IsolatedDisks(Isolations(compiled, {}, NOW)).plan(lambda _block: number, listed)
    return [(one.file.removeprefix("blkio."), one.group, one.value) for one in plan.writes], plan.notes


def test_disks_are_limited_by_device() -> None:
    found, notes = disks({})
    assert found == [
        ("throttle.read_iops_device", BEST_EFFORT, "8:0 100"),
        ("cost.weight", BEST_EFFORT, "8:0 60"),
        ("cost.qos", ROOT_GROUP, "8:0 enable=1 ctrl=user rpct=95 rlat=500 wpct=95 wlat=3000"),
        ("cost.model", ROOT_GROUP, "8:0 ctrl=auto"),
    ]
    assert not notes


def test_devices_that_nobody_limits_any_more_are_reset() -> None:
    there = {
        "blkio.throttle.write_bps_device": {"8:0", "8:16"},
        "blkio.cost.weight": {"8:0"},
        "blkio.cost.qos": {"8:0"},
    }
    found, _notes = disks(there, on=False)
    assert found == [
        ("throttle.write_bps_device", BEST_EFFORT, "8:0 0"),
        ("throttle.write_bps_device", BEST_EFFORT, "8:16 0"),
        ("cost.weight", BEST_EFFORT, "8:0 100"),
        ("cost.qos", ROOT_GROUP, "8:0 enable=0"),
    ]


def test_a_device_that_is_not_there_leaves_its_group_alone() -> None:
    found, notes = disks({}, number=None)
    assert found == []
    assert notes[0] == "Isolation/BE.blocks: there is no device `/dev/sda` on the node"
