"""Who gets CPU time on the model: shares, CPU sets, quotas and bursts.

In the long run CFS gives each group its weight's share of a CPU among the groups that want it there, level by level
(Documentation/scheduler/sched-design-CFS.rst), and moves work to CPUs that idle. A quota is refilled each period, and
what was left of it adds up to `burst` (Documentation/scheduler/sched-bwc.rst). Left out: what moving work costs, single
slices, the latency of one wake-up.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from koordpolicy.linux.fake.group import UNLIMITED, Group, GroupTree
from koordpolicy.linux.files.kernel_file import CgroupVersion

_MICROSECOND: Final = 1000
_ROUNDS: Final = 8
"""How often what a CPU could not give is asked of others: few of them matter, and each costs."""
_NOTHING: Final = 1.0
"""Nanoseconds that are not worth another round."""
_IDLE_WEIGHT: Final = 3 / 1024
"""Of a usual group's: WEIGHT_IDLEPRIO against NICE_0_LOAD of kernel/sched."""


class Runs(Protocol):
    """A task as the division sees it."""

    pid: int
    threads: int

    @property
    def wants(self) -> float: ...


def refill(root: Group, now: int, step: int) -> None:
    """Begin the periods that begin in this step. A group that ran out in the last one was throttled in it."""
    for group in root.below():
        if group.quota == UNLIMITED:
            group.exhausted = False
            continue
        period = group.period * _MICROSECOND
        if now % period >= step:
            if group.exhausted:
                group.throttled_time += step
            continue
        quota = group.quota * _MICROSECOND
        if group.ran:
            group.periods += 1
            group.throttled += group.exhausted
        kept = max(0.0, group.left) if now else 0.0
        group.bursts += bool(group.ran and kept == 0 and group.burst)
        group.left = min(kept + quota, quota + group.burst * _MICROSECOND)
        group.exhausted = group.ran = False


def divide(
    tree: GroupTree, running: Sequence[tuple[Runs, Group, frozenset[int]]], step: int
) -> Mapping[int, float]:
    """Nanoseconds of CPU that each task gets in a step, by PID.

    `running` are tasks with their groups and the CPUs that they may use. Each spreads what it wants over its CPUs so that
    they are equally loaded, who has the least choice first; what a CPU has not for it is asked of those that have some
    left. CPUs that the same tasks may use are alike, and divided as one of so many times the time.
    """
    running = sorted(running, key=lambda one: len(one[2]))
    got = {task.pid: 0.0 for task, _, _ in running}
    sizes, places_of = _alike(tree.all_cpus, {cpus for _, _, cpus in running})
    free = {place: float(step) * size for place, size in sizes.items()}
    for _ in range(_ROUNDS):
        asks: dict[int, list[tuple[Runs, Group, float]]] = {}
        loads = {place: step - left / sizes[place] for place, left in free.items()}
        for task, group, cpus in running:
            left = min(task.wants * step - got[task.pid], _allowed(group))
            places = [place for place in places_of[cpus] if free[place] > _NOTHING]
            if left > _NOTHING and places:
                for place, ask in _spread(left, {place: loads[place] for place in places}, sizes).items():
                    loads[place] += ask / sizes[place]
                    asks.setdefault(place, []).append((task, group, ask))
        if not asks:
            break
        for place, wanted in asks.items():
            for pid, share in _share(tree, wanted, free[place]).items():
                got[pid] += share
                free[place] -= share
    for task, group, _ in running:
        if task.wants * step - got[task.pid] > _NOTHING:
            for one in group.above():
                # It would have run on, and this group's quota was why it could not.
                one.exhausted = one.exhausted or (one.quota != UNLIMITED and one.left <= _NOTHING)
    return got


def _alike(
    everywhere: frozenset[int], sets: Collection[frozenset[int]]
) -> tuple[dict[int, int], dict[frozenset[int], list[int]]]:
    """CPUs that stand in the same ones of some sets: how many, by the first of them, and of each set the first ones."""
    firsts: dict[tuple[bool, ...], int] = {}
    sizes: dict[int, int] = {}
    places: dict[frozenset[int], list[int]] = {one: [] for one in sets}
    for cpu in sorted(everywhere):
        where = tuple(cpu in one for one in sets)
        first = firsts.setdefault(where, cpu)
        sizes[first] = sizes.get(first, 0) + 1
        if first == cpu:
            for one, inside in zip(sets, where, strict=True):
                if inside:
                    places[one].append(cpu)
    return sizes, places


def _spread(amount: float, loads: Mapping[int, float], sizes: Mapping[int, int]) -> dict[int, float]:
    """An amount over CPUs so that those which take of it are equally loaded, the least loaded first.

    `loads` are of one CPU each, by the first of `sizes` that are alike.
    """
    ordered = sorted(loads, key=lambda cpu: (loads[cpu], cpu))
    total, count = 0.0, 0
    for at, cpu in enumerate(ordered, start=1):
        total += loads[cpu] * sizes[cpu]
        count += sizes[cpu]
        level = (total + amount) / count
        if at == len(ordered) or level <= loads[ordered[at]]:
            return {one: (level - loads[one]) * sizes[one] for one in ordered[:at] if level > loads[one]}
    return {}


def _allowed(group: Group) -> float:
    """Nanoseconds that quotas of a group and of those above it let it still run."""
    return min((one.left for one in group.above() if one.quota != UNLIMITED), default=float("inf"))


def _weight(tree: GroupTree, group: Group) -> float:
    usual = 1024 if tree.version is CgroupVersion.V1 else 100
    return _IDLE_WEIGHT if group.idle else group.weight / usual


def _share(tree: GroupTree, wanted: Sequence[tuple[Runs, Group, float]], time: float) -> dict[int, float]:
    """What each task gets of one CPU's time, by the weights of its group and of those above it, level by level."""
    return _share_below(tree, tree.root, wanted, time)


def _share_below(
    tree: GroupTree, parent: Group, wanted: Sequence[tuple[Runs, Group, float]], time: float
) -> dict[int, float]:
    """A level of it: children of `parent` by their weights, tasks of its own as a usual group each."""
    parts: dict[str, tuple[float, Group | None, list[tuple[Runs, Group, float]]]] = {}
    for one in wanted:
        task, group, _ = one
        child = group
        while child is not parent and child.parent is not parent and child.parent is not None:
            child = child.parent
        key = f"task {task.pid}" if child is parent else child.path
        weight = 1.0 if child is parent else _weight(tree, child)
        parts.setdefault(key, (weight, None if child is parent else child, []))[2].append(one)
    got: dict[int, float] = {}
    needs = {key: min(_bound(part[1]), sum(one[2] for one in part[2])) for key, part in parts.items()}
    for key, time_ in _by_weight({key: (part[0], needs[key]) for key, part in parts.items()}, time).items():
        _, child_, tasks = parts[key]
        if child_ is None:
            got[tasks[0][0].pid] = time_
        else:
            got.update(_share_below(tree, child_, tasks, time_))
    if parent.quota != UNLIMITED:
        parent.left -= sum(got.values())
    parent.ran = parent.ran or bool(got)
    return got


def _bound(group: Group | None) -> float:
    return float("inf") if group is None or group.quota == UNLIMITED else max(0.0, group.left)


def _by_weight(wanted: Mapping[str, tuple[float, float]], time: float) -> dict[str, float]:
    """Time by weight, nobody more than wanted: what one does not want goes to the others (max-min fairness)."""
    got: dict[str, float] = {}
    left = dict(wanted)
    while left and time > 0:
        each = time / sum(weight for weight, _ in left.values())
        content = {key: need for key, (weight, need) in left.items() if need <= weight * each}
        if not content:
            return got | {key: weight * each for key, (weight, _) in left.items()}
        for key, need in content.items():
            got[key] = need
            time -= need
            del left[key]
    return got | dict.fromkeys(left, 0.0)
