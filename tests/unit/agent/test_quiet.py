"""Rounds that leave alone what nobody wants otherwise: their kernel ends as that of rounds that do everything again."""

from dataclasses import replace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.agent.audit.log import AuditLog
from koordpolicy.agent.carrying_out import CarryingOut
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.plan import BEST_EFFORT, Order, Plan, Write, container_group, pod_group
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor
from koordpolicy.linux.writes.write import FileOutcome
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.runtime.metrics import Metrics
from tests.unit.agent.nodes import NOW, sight
from tests.unit.agent.test_unchanged import frame

QUOTA, SHARES = "cpu.cfs_quota_us", "cpu.shares"
POD = "kubepods/besteffort/podu"
KINDS = {
    "CPUSuppress": "cpu-suppress",
    "CPUBurst": "cpu-burst",
    "ContainerHook": "batch-resources",
    "More": "cpu-burst",
}
GROUPS = (BEST_EFFORT, pod_group("u"), container_group("u", "web"))
LIMITS = DoorLimits(60 * NANOSECONDS, 1, NANOSECONDS, NANOSECONDS, 100)


class World:
    """A kernel with the group of a pod in it, and who carries plans out there."""

    def __init__(self) -> None:
        self.now = 0
        self.root = FakeRoot()
        hierarchy = discover_hierarchy(self.root)
        for path in ("kubepods", "kubepods/burstable", "kubepods/besteffort", POD, f"{POD}/c"):
            self.root.make_directory(hierarchy.directory("cpu", path))
        self.kernel = NodeKernel(
            self.root, hierarchy, KernelDoor(self.root, hierarchy, lambda: self.now, LIMITS, WriteLog(0))
        )
        self.metrics = Metrics("agent")
        unused = cast(Any, None)
        self.doing = CarryingOut(unused, unused, AuditLog(1 << 16, lambda: 0, lambda: "t"), self.metrics, 0)
        pod = NodePod(sight().pods[0], POD, {"web": f"{POD}/c"})
        self.frame: NodeFrame = replace(frame(), pods={"u": pod}, kernel=self.kernel)

    def round(self, plans: dict[str, Plan], seconds: int) -> None:
        self.now += seconds * NANOSECONDS
        self.doing.write(plans, replace(self.frame, monotonic=self.now, now=NOW + self.now))

    def files(self) -> dict[str, str]:
        locate = self.kernel.hierarchy.located
        places = [
            locate(file, path)[0].path
            for file in (QUOTA, SHARES)
            for path in ("kubepods/besteffort", POD, f"{POD}/c")
        ]
        return {path: self.root.read(path) for path in places}

    def writes(self) -> int:
        """Files that were looked at, whatever came of it."""
        name = "koordpolicy_kernel_writes_total"
        return int(
            sum(
                self.metrics.value(name, writer=writer, outcome=str(outcome)) or 0
                for writer in set(KINDS.values())
                for outcome in FileOutcome
            )
        )


def plan_of(kind: str, wanted: list[tuple[str, int, int]], holds: list[int]) -> Plan:
    strategy = KINDS[kind]
    writes = [
        Write(file, GROUPS[at], value, "test", strategy, Order.LEVELLED if file == QUOTA else Order.AS_LISTED)
        for file, at, value in wanted
        if file == QUOTA or strategy == "batch-resources"
    ]
    return Plan(tuple(writes), holds={(QUOTA, GROUPS[at]): strategy for at in holds})


def plans_of(turn: dict[str, Any]) -> dict[str, Plan]:
    """A plan wants a file once, and kinds of one strategy want different files; between others the arbiter decides."""
    plans: dict[str, Plan] = {}
    taken: dict[str, set[int]] = {}
    for kind, (wanted, holds) in turn.items():
        others = taken.setdefault(KINDS[kind], set())
        mine = [one for one in wanted if one[1] not in others]
        held = [at for at in holds if at not in others]
        plans[kind] = plan_of(kind, mine, held)
        others.update(at for _, at, _ in mine)
        others.update(held)
    return plans


WANTED = st.lists(
    st.tuples(st.sampled_from([QUOTA, SHARES]), st.integers(0, 2), st.sampled_from([2000, 5000, 20_000])),
    max_size=3,
    unique_by=lambda one: one[:2],
)
TURNS = st.dictionaries(
    st.sampled_from(sorted(KINDS)), st.tuples(WANTED, st.lists(st.integers(0, 2), max_size=2)), max_size=4
)


@given(st.lists(st.tuples(TURNS, st.integers(0, 40)), max_size=12))
def test_the_kernel_ends_as_if_everything_were_written_each_time(
    rounds: list[tuple[dict[str, Any], int]],
) -> None:
    lazy, whole = World(), World()
    for turn, seconds in rounds:
        plans = plans_of(turn)
        whole.doing.look_again()
        for world in (lazy, whole):
            world.round(plans, seconds)
        assert lazy.files() == whole.files()


def test_of_a_hundred_files_only_those_are_looked_at_that_somebody_wants_otherwise() -> None:
    world = World()
    sized = Plan(tuple(Write(SHARES, group, 5000, "test", "batch-resources") for group in GROUPS))
    held = Plan()
    for quota in (2000, 5000, 20_000, 20_000, 20_000):
        held = Plan((Write(QUOTA, BEST_EFFORT, quota, "test", "cpu-suppress"),))
        world.round({"CPUSuppress": held, "ContainerHook": sized}, 1)
    assert world.writes() == len(GROUPS) + 3
    # What nobody has looked at for long is looked at again, and who shares a file with one who moves is settled with it.
    world.round({"CPUSuppress": Plan(), "ContainerHook": sized}, 60)
    assert world.writes() == 2 * len(GROUPS) + 3
    both = Plan((*sized.writes, Write(QUOTA, BEST_EFFORT, 2000, "test", "batch-resources")))
    world.round({"CPUSuppress": held, "ContainerHook": both}, 1)
    world.round({"CPUSuppress": Plan(), "ContainerHook": both}, 1)
    assert (
        world.files()[world.kernel.hierarchy.located(QUOTA, "kubepods/besteffort")[0].path].split()[0]
        == "2000"
    )
