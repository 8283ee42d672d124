"""Rounds of caches: groups of resctrl for classes and for pods with an annotation of their own, and who is in them."""

from collections.abc import Iterable, Iterator
from typing import Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.plan import Group, Level, Plan, Write, joined
from koordpolicy.agent.strategies.cache_isolation import (
    GROUPS,
    SCHEMATA,
    TASKS,
    WRITER,
    Caches,
    IsolatedCache,
)
from koordpolicy.agent.strategies.isolation import Isolations, labelled_group
from koordpolicy.agent.strategies.own_caches import PREFIX, own_lines
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.members import read_tasks
from koordpolicy.linux.readings.resctrl import read_cache_mask, read_group_tasks, resctrl_groups
from koordpolicy.linux.readings.topology import read_last_level_caches, read_vendor
from koordpolicy.linux.writes.resctrl_groups import MADE, REMOVED
from koordpolicy.model.facts import Record
from koordpolicy.model.protocol import RESCTRL
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.time import NANOSECONDS

GROUP: Final = "resctrl group"
"""No file: whether there is a group of resctrl."""
_LEFT: Final = 10 * NANOSECONDS
"""How long the group of a pod stays that is not told of any more."""


class CacheRounds:
    """Keeps what never changes of the machine's caches, and since when pods with groups of their own are gone."""

    def __init__(self) -> None:
        self._caches: Caches | None = None
        self._gone: dict[str, int] = {}
        self._begun = False

    def plan(self, frame: NodeFrame) -> Plan:
        """What is written for classes, and for pods that speak for themselves."""
        isolations = Isolations(frame.graph, frame.record, frame.now)
        cache = IsolatedCache(isolations)
        classes = [name for name in GROUPS if cache.share(name) is not None]
        own = {uid: one for uid, one in frame.pods.items() if RESCTRL in one.pod.annotations}
        if not classes and not own and not self._gone and self._begun:
            return Plan()
        self._begun = True
        try:
            caches = self._known(frame)
        except KernelFileError as problem:
            wanted = bool(classes or own)
            return Plan(notes=(f"caches are nobody's own here: {problem}",) if wanted else ())
        made = [_group(name, MADE, f"Isolation/{name}.cache") for name in classes]
        tasks = {
            str(pod["uid"]): _new_tasks(frame, frame.pods[str(pod["uid"])], labelled_group(pod))
            for pod in _active(frame)
            if labelled_group(pod) in classes and isolations.on(labelled_group(pod), "cache")
        }
        return joined(
            (
                Plan(tuple(made)),
                cache.plan(caches, _active(frame), tasks),
                *(_own(frame, caches, uid, one) for uid, one in own.items()),
                Plan(tuple(self._removed(frame, own))),
            )
        )

    def _known(self, frame: NodeFrame) -> Caches:
        """Raises `KernelFileError` where resctrl is not there."""
        if self._caches is None:
            root = frame.kernel.root
            mask = read_cache_mask(root)
            self._caches = Caches(sorted(read_last_level_caches(root)), mask, read_vendor(root))
        return self._caches

    def _removed(self, frame: NodeFrame, own: Iterable[str]) -> Iterator[Write]:
        """The groups of pods that have not been told of for a while."""
        try:
            there = [name for name in resctrl_groups(frame.kernel.root) if name.startswith(PREFIX)]
        except KernelFileError:
            there = []
        kept = {f"{PREFIX}{uid}" for uid in own}
        self._gone = {name: self._gone.get(name, frame.monotonic) for name in there if name not in kept}
        for name, since in self._gone.items():
            if frame.trusted and frame.monotonic - since >= _LEFT:
                yield _group(name, REMOVED, "its pod is gone, or speaks for itself no more")


def _own(frame: NodeFrame, caches: Caches, uid: str, one: NodePod) -> Plan:
    name, pod = f"{PREFIX}{uid}", f"{one.pod.namespace}/{one.pod.name}"
    try:
        lines, problems = own_lines(one.pod.annotations[RESCTRL], caches)
    except ObjectError as problem:
        return Plan(notes=(f"{pod}: {problem}",))
    reason = f"what {pod} says itself"
    group = Group(Level.RESCTRL, name=name)
    writes = [_group(name, MADE, reason)]
    writes += [Write(SCHEMATA, group, line, reason, WRITER) for line in lines]
    writes += [Write(TASKS, group, str(task), reason, WRITER) for task in _new_tasks(frame, one, name)]
    return Plan(tuple(writes), notes=tuple(f"{pod}: {RESCTRL}: {problem}" for problem in problems))


def _new_tasks(frame: NodeFrame, one: NodePod, group: str) -> list[int]:
    """The tasks of a pod that are not in its group yet."""
    root, hierarchy = frame.kernel.root, frame.kernel.hierarchy
    try:
        there = read_group_tasks(root, group)
    except KernelFileError:
        there = frozenset()  # it is made in this round
    found: list[int] = []
    for path in one.containers.values():
        try:
            found += [task for task in read_tasks(root, hierarchy, path) if task not in there]
        except KernelFileError:
            continue  # the container has ended
    return sorted(found)


def _active(frame: NodeFrame) -> list[Record]:
    return [
        pod for pod in frame.pod_records if pod["active"] and pod["known"] and str(pod["uid"]) in frame.pods
    ]


def _group(name: str, value: str, reason: str) -> Write:
    return Write(GROUP, Group(Level.RESCTRL, name=name), value, reason, WRITER)
