"""Where memory runs short on the model: reclaim of page cache, and the OOM killer.

A group above its limit gives up page cache of its own, then a task of it is ended; so does the machine below its
reserve. Page cache below `memory.min` and `memory.low` of its group is reclaimed last (Documentation/admin-guide/
cgroup-v2.rst). Who is ended is who holds most, with `oom_score_adj` thousandths of all memory on top (oom_badness of
mm/oom_kill.c). Left out: swap, the time that reclaim takes, pages' ages.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from koordpolicy.linux.fake.group import UNLIMITED, Group, GroupTree

_NEVER: Final = -1000
"""The `oom_score_adj` of a task that is never ended."""


class Holds(Protocol):
    """A task as the OOM killer sees it."""

    pid: int
    memory: int
    oom_score_adj: int


class PhysicalMemory(Protocol):
    """The machine's memory, and how much of it stays free."""

    @property
    def memory(self) -> int: ...

    @property
    def reserve(self) -> int: ...


def fit_memory(
    tree: GroupTree, tasks: Mapping[int, tuple[Holds, Group]], settings: PhysicalMemory
) -> Iterator[int]:
    """Reclaim until everything fits; the PIDs that have to end for it, whose memory then counts as free."""
    freed: dict[str, int] = {}
    ended: set[int] = set()
    for group in tree.root.below():
        bounds = [bound for bound in (group.limit, group.high) if bound != UNLIMITED]
        if bounds:
            over = group.memory - min(bounds)
            if group.high != UNLIMITED and group.memory > group.high:
                group.high_events += 1
            _reclaim(group, over)
        if group.limit != UNLIMITED:
            yield from _kill(group, group.limit, tasks, settings, freed, ended)
    short = tree.root.memory - sum(freed.values()) - (settings.memory - settings.reserve)
    _reclaim(tree.root, short)
    yield from _kill(tree.root, settings.memory - settings.reserve, tasks, settings, freed, ended)


def _reclaim(group: Group, amount: int) -> None:
    """Take page cache of a group and those below it, first what no `min` or `low` protects."""
    for protected in (True, False):
        for one in group.below():
            if amount <= 0:
                return
            kept = max(one.min, one.low if protected else 0)
            spare = min(one.cache, max(0, one.memory - kept))
            taken = min(spare, amount)
            one.cache -= taken
            amount -= taken


def _kill(
    group: Group,
    limit: int,
    tasks: Mapping[int, tuple[Holds, Group]],
    settings: PhysicalMemory,
    freed: dict[str, int],
    ended: set[int],
) -> Iterator[int]:
    """Tasks of a group, the worst first, until what is left fits."""
    inside = {one.path for one in group.below()}
    while group.memory - sum(amount for path, amount in freed.items() if path in inside) > limit:
        candidates = [
            (task, home)
            for pid, (task, home) in tasks.items()
            if pid not in ended and home.path in inside and task.oom_score_adj > _NEVER and task.memory > 0
        ]
        if not candidates:
            return
        worst, home = max(
            candidates,
            key=lambda one: (one[0].memory + one[0].oom_score_adj * settings.memory // 1000, one[0].pid),
        )
        for task, at in candidates if home.oom_group else [(worst, home)]:
            if at is home:
                ended.add(task.pid)
                freed[at.path] = freed.get(at.path, 0) + task.memory
                at.oom_kills += 1
                yield task.pid
