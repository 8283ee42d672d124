"""Parts of the last-level cache and of memory's bandwidth that classes get: groups of resctrl."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.agent.plan import Group, Level, Plan, Write
from koordpolicy.agent.strategies.isolation import BE, LS, LSR, Isolations, labelled_group
from koordpolicy.algorithms.cache_part import (
    CachePartError,
    bandwidth_line,
    bandwidth_value,
    cache_line,
    cache_mask,
    everywhere,
)
from koordpolicy.graph.graph import Facts
from koordpolicy.model.protocol import RESCTRL

WRITER: Final = "resctrl"
SCHEMATA: Final = "schemata"
TASKS: Final = "resctrl.tasks"
GROUPS: Final = (LSR, LS, BE)
_WHOLE: Final = 100.0


@dataclass(frozen=True, slots=True)
class Caches:
    """The node's last-level caches: their numbers, the mask of all ways of one (0 for unknown), and who made the CPU."""

    numbers: Sequence[int]
    full_mask: int
    vendor: str


@dataclass(frozen=True, slots=True)
class CacheShare:
    """What a group gets, in percent; None for what nobody says."""

    start: float | None
    end: float | None
    bandwidth: float | None


def lines(share: CacheShare, caches: Caches) -> tuple[list[str], list[str]]:
    """The lines of a group's schemata file, and what is wrong with those that are not there."""
    found, problems = [], []
    if share.start is not None and share.end is not None and caches.numbers:
        try:
            mask = cache_mask(caches.full_mask, share.start, share.end)
            found.append(cache_line(everywhere(caches.numbers, mask)))
        except CachePartError as problem:
            problems.append(str(problem))
    if share.bandwidth is not None:
        try:
            value = bandwidth_value(share.bandwidth, caches.vendor)
            found.append(bandwidth_line(everywhere(caches.numbers, value)))
        except CachePartError as problem:
            problems.append(str(problem))
    return found, problems


@dataclass(frozen=True, slots=True)
class IsolatedCache:
    """The policies of a node on its caches."""

    isolations: Isolations

    def share(self, group: str) -> CacheShare | None:
        """What a group gets, all of it while it is switched off; None where nobody speaks of it."""
        start, end, bandwidth = (
            self.isolations.value(group, "cache", name, disabled=off)
            for name, off in (("start", 0.0), ("end", _WHOLE), ("bandwidth", _WHOLE))
        )
        if start is None and end is None and bandwidth is None:
            return None
        if end is not None and start is None:
            start = 0.0
        return CacheShare(start, _WHOLE if end is None and start is not None else end, bandwidth)

    def plan(self, caches: Caches, pods: Iterable[Facts], tasks: Mapping[str, Iterable[int]]) -> Plan:
        """What is to be written: the groups' parts, and the tasks that go into them, by the UIDs of pods.

        `tasks` are those of each pod that are not in its group yet.
        """
        writes: list[Write] = []
        notes: list[str] = []
        for name in GROUPS:
            share = self.share(name)
            if share is None:
                continue
            found, problems = lines(share, caches)
            reason = f"Isolation/{name}.cache"
            writes += [Write(SCHEMATA, _group(name), line, reason, WRITER) for line in found]
            notes += [f"Isolation/{name}.cache: {problem}" for problem in problems]
        for pod in pods:
            name = labelled_group(pod)
            if not pod["active"] or RESCTRL in pod["annotations"] or name not in GROUPS:
                continue
            if not self.isolations.on(name, "cache"):
                continue
            reason = f"a pod of class {pod['qosLabel']}"
            for task in sorted(tasks.get(str(pod["uid"]), ())):
                writes.append(Write(TASKS, _group(name), str(task), reason, WRITER))
        return Plan(tuple(writes), notes=tuple(notes))


def _group(name: str) -> Group:
    return Group(Level.RESCTRL, name=name)
