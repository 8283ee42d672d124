"""What there is to be looked at, whatever it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from koordpolicy.console.frames import Frames
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.port import Object
from koordpolicy.kube.snapshot import Snapshot

OURS: Final = "koordpolicy-"
"""What components of koordpolicy are called in Events, with their names behind it."""


class CannotAnswer(Exception):
    """A question has no answer here; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class NodeShown:
    """What is said of a node once: CPU in millicores, memory in bytes."""

    name: str
    cpu: int
    memory: int
    labels: Mapping[str, str]

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "name": self.name,
            "cpu": self.cpu,
            "memory": self.memory,
            "labels": dict(self.labels),
        }


@dataclass(frozen=True, slots=True)
class Names:
    """What codes of frames stand for, in their order. A revision is one that agents decide by; the empty one is not told."""

    classes: tuple[str, ...] = ()
    bands: tuple[str, ...] = ()
    revisions: tuple[str, ...] = ()


@dataclass(slots=True)
class PodSpan:
    """A pod's time on a node, or before it had one (`node` is then empty): nanoseconds since 1970, `end` None while it lasts.

    `outcome` says how it ended: `finished`, `failed`, `preempted` for another pod, `evicted` by the agent of its node, `moved` by the descheduler,
    `displaced` by whoever asked the Eviction API, `lost` with its node, `gone` where nobody says why, or empty.
    """

    pod: str
    node: str
    start: int
    qos: str = ""
    band: str = ""
    cpu: int = 0
    """Millicores that it uses now, as measured."""
    requested: int = 0
    end: int | None = None
    outcome: str = ""

    def at(self, time: int) -> bool:
        """Whether it was so at a moment."""
        return self.start <= time and (self.end is None or time < self.end)

    def plain(self) -> dict[str, Any]:
        """As JSON values; times in seconds since 1970."""
        return {
            "pod": self.pod,
            "node": self.node,
            "start": self.start / 1e9,
            "end": None if self.end is None else self.end / 1e9,
            "class": self.qos,
            "band": self.band,
            "cpu": self.cpu,
            "requested": self.requested,
            "outcome": self.outcome,
        }


@dataclass(frozen=True, slots=True)
class ToldEvent:
    """An Event of Kubernetes: who told what of which object. Times in seconds since 1970, 0 for unknown.

    `earlier` is about an object of the same name that was there before.
    """

    about: str
    """`Pod default/web-0`, `Node n1`."""
    component: str
    reason: str
    message: str
    warning: bool
    count: int
    first: float
    last: float
    earlier: bool = False

    @property
    def ours(self) -> bool:
        """Whether a component of koordpolicy told it."""
        return self.component.startswith(OURS)


@dataclass(frozen=True, slots=True)
class PodBackground:
    """What is known of a pod beside the objects of a picture.

    `events` are None where there are none to be had, and `unknown` says why; the latest come last. `submitted` is what the pod's owner
    asked for, and `source` says where that stands.
    """

    events: tuple[ToldEvent, ...] | None = None
    unknown: str = ""
    submitted: Object | None = None
    source: str = ""


class World(Protocol):
    """A cluster to look at. Methods are called from the event loop, and give what they know at once unless they are coroutines."""

    kind: str
    """`simulated`, `picture` or `live`."""
    title: str
    graph: RuleGraph
    frames: Frames

    def nodes(self) -> tuple[NodeShown, ...]:
        """The nodes, in the order of the frames' rows."""
        ...

    def names(self) -> Names:
        """What the codes of the frames stand for."""
        ...

    def clock(self) -> dict[str, Any]:
        """Where time stands, and whether it can be told to pause."""
        ...

    def steer(self, wanted: Mapping[str, Any]) -> None:
        """Pause, go on, take a step, or change the speed. Raises `CannotAnswer`."""
        ...

    def spans(self) -> tuple[PodSpan, ...]:
        """All that is known of pods and their nodes, over time."""
        ...

    async def picture(self) -> Snapshot:
        """The objects as they are now. Raises `CannotAnswer`."""
        ...

    def submitted(self, pod: str) -> Object | None:
        """The pod as its owner submitted it, where that is known."""
        ...

    async def beside(self, pod: str, picture: Snapshot) -> PodBackground:
        """What is known of a pod beside a picture: what was told of it and its node, and what its owner asked for."""
        ...
