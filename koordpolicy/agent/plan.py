"""What a strategy wants done, as data: writes to kernel files, and pods that have to go.

Nothing here touches anything: a dry run prints it, the simulator plays it, and only the agent's process carries it out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

FileValue: TypeAlias = int | frozenset[int] | str
"""An integer (-1 for no limit), a set of CPUs, or one line of text."""


class Level(StrEnum):
    """Which sort of group a file stands in."""

    NODE = "node"
    """None: a file of the whole node, below /proc/sys and the like."""
    ROOT = "root"
    """The root of the hierarchy."""
    QOS = "qos"
    """All pods of a Kubernetes class; of `Guaranteed` that is the group of all pods."""
    POD = "pod"
    CONTAINER = "container"
    HOST_APPLICATION = "host application"
    RESCTRL = "resctrl"
    """A group of resctrl, by its name."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group by what it is, wherever the node's driver and runtime keep it.

    `pod` is a pod's UID; `name` that of a container of it, of a Kubernetes class, of a host application or a group of resctrl.
    """

    level: Level
    pod: str = ""
    name: str = ""

    @property
    def words(self) -> str:
        """For people."""
        return " ".join(part for part in (self.level, self.pod, self.name) if part)


NODE: Final = Group(Level.NODE)
ALL_PODS: Final = Group(Level.QOS, name="Guaranteed")
BURSTABLE: Final = Group(Level.QOS, name="Burstable")
BEST_EFFORT: Final = Group(Level.QOS, name="BestEffort")


def pod_group(uid: str) -> Group:
    """The group of a pod."""
    return Group(Level.POD, uid)


def container_group(uid: str, name: str) -> Group:
    """The group of a container of a pod."""
    return Group(Level.CONTAINER, uid, name)


class Order(StrEnum):
    """How parents and children follow each other."""

    AS_LISTED = "as listed"
    """Each write by itself, in the order of the plan."""
    LEVELLED = "levelled"
    """Parents first where they grow, children first where they shrink: whoever writes sees to it."""
    LAST = "last"
    """After all others of the plan: a parent that shrinks, with whatever is written to its children."""


@dataclass(frozen=True, slots=True)
class ChildGrowth:
    """The child for whose sake a parent's file changes, and by how much; negative where it shrinks."""

    group: Group
    by: int


@dataclass(frozen=True, slots=True)
class Write:
    """A value for a kernel file, by its name in cgroup v1, and the reason in a phrase, which tells no two writes apart.

    `otherwise` is for kernels that know the file and do not take the value. A write with a `child` stands beside the child's
    own write of the same file, and is made where that one is, not else.
    """

    file: str
    group: Group
    value: FileValue
    reason: str = field(compare=False)
    strategy: str
    order: Order = Order.AS_LISTED
    otherwise: FileValue | None = None
    child: ChildGrowth | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that has to go. `by` is how, as policy says: `Eviction`, `Stop` or `EvictionOrStop`."""

    namespace: str
    name: str
    uid: str
    reason: str
    strategy: str
    by: str = "Eviction"


@dataclass(frozen=True, slots=True)
class Notice:
    """What a strategy tells of a pod, once: an Event of that reason."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str


_NOTHING_HELD: Final[Mapping[tuple[str, Group], str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Plan:
    """What one strategy wants, in order, and what it has to say about it: `notes` are phrases for people.

    `holds` are files, by name and group, that a strategy decides about though it has nothing to write now.
    """

    writes: Sequence[Write] = ()
    evictions: Sequence[Eviction] = ()
    notes: Sequence[str] = ()
    notices: Sequence[Notice] = ()
    holds: Mapping[tuple[str, Group], str] = field(default_factory=lambda: _NOTHING_HELD)

    @property
    def empty(self) -> bool:
        """Whether nothing is to be done."""
        return not self.writes and not self.evictions


def joined(plans: Iterable[Plan]) -> Plan:
    """One plan of several, in their order."""
    listed = list(plans)
    return Plan(
        tuple(write for plan in listed for write in plan.writes),
        tuple(eviction for plan in listed for eviction in plan.evictions),
        tuple(note for plan in listed for note in plan.notes),
        tuple(notice for plan in listed for notice in plan.notices),
        {place: by for plan in listed for place, by in plan.holds.items()},
    )
