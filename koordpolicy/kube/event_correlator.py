"""What is told of a cluster's objects, before it is written: what repeats is counted, many alike are one.

    correlator = EventCorrelator(CorrelatedEvent, now_ns)
    event = correlator.note(pod, "FailedScheduling", "no room", type="Warning")    # None: the object causes too many

Nothing here waits or writes. `events.Recorder` writes what comes out to a cluster; a simulation counts it.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from koordpolicy.kube.port import Object
from koordpolicy.model.time import NANOSECONDS

EventSeverity: TypeAlias = Literal["Normal", "Warning"]

_LONGEST_MESSAGE: Final = 1024
_COMBINED: Final = "(combined from similar events): "


class EventRecorder(Protocol):
    """Whom one tells what happened to objects."""

    def record(
        self,
        regarding: Object,
        reason: str,
        message: str,
        *,
        type: EventSeverity = "Normal",
        action: str = "",
    ) -> None:
        """Note that something happened to an object. Never waits and never fails.

        `regarding` is the object or as much of it as says which one it is: `apiVersion`, `kind`, `metadata`.
        `reason` is a word for machines in CamelCase, `message` a sentence for people (1,024 characters at most),
        `action` what was done about it.
        """


@dataclass(frozen=True, slots=True)
class EventLimits:
    """How much is too much.

    `queue` events wait at most, `remembered` are known again when they repeat. An object may cause `burst` events
    at once and one each `refill` seconds after that; those of the reasons in `unlimited` are told however many there
    are, and count for nothing. `alike` events of one object and reason with different
    messages within `window` seconds become one. `workers` write at a time, `attempts` times at most, of which
    `forbidden` may be refused for want of permission: a server that has just started knows no roles yet. Errors of one
    kind are logged at once and then every `quiet` seconds, with their number.
    """

    queue: int = 1000
    remembered: int = 4096
    burst: int = 25
    refill: float = 300.0
    alike: int = 10
    window: float = 600.0
    workers: int = 4
    attempts: int = 8
    forbidden: int = 4
    quiet: float = 60.0
    unlimited: frozenset[str] = frozenset()


@dataclass(slots=True)
class CorrelatedEvent:
    """One event as it is counted so far. `about` is an ObjectReference; times are nanoseconds since 1970."""

    about: dict[str, Any]
    type: EventSeverity
    reason: str
    action: str
    message: str
    first_ns: int
    last_ns: int
    count: int = 1


_Event = TypeVar("_Event", bound=CorrelatedEvent)


class EventCorrelator(Generic[_Event]):
    """Counts the events of one component, each an object of the class `made`. `now_ns` gives nanoseconds since 1970."""

    def __init__(
        self, made: type[_Event], now_ns: Callable[[], int], limits: EventLimits | None = None
    ) -> None:
        self._made = made
        self._now_ns = now_ns
        self._limits = limits or EventLimits()
        self._window_ns = int(self._limits.window * NANOSECONDS)
        self._events: OrderedDict[Hashable, _Event] = OrderedDict()
        self._buckets: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()
        """How many more events an object might cause, and when that was."""
        self._alike: OrderedDict[Hashable, tuple[int, tuple[str, ...]]] = OrderedDict()
        """Since when, and which, messages of one object and reason are remembered."""

    def note(
        self,
        regarding: Object,
        reason: str,
        message: str,
        *,
        type: EventSeverity = "Normal",
        action: str = "",
    ) -> _Event | None:
        """Count that something happened to an object, see `EventRecorder.record`; None where it causes too many.

        What repeats gives the same event, as long as that is remembered.
        """
        now = self._now_ns()
        about = reference_to(regarding)
        said = about.get
        whose = (said("apiVersion"), said("kind"), said("namespace"), said("name"), said("uid"))
        if reason not in self._limits.unlimited and not self._may_speak(whose, now):
            return None
        if not message.isascii():
            message = message.encode("utf-8", "backslashreplace").decode()
        if len(message) > _LONGEST_MESSAGE:
            message = message[: _LONGEST_MESSAGE - 1] + "…"
        group = (whose, type, reason, action)
        key: Hashable = (group, message)
        if self._is_one_of_many(group, message, now):
            key = group
            message = (_COMBINED + message)[:_LONGEST_MESSAGE]
        event = self._events.pop(key, None)
        if event is None:
            event = self._made(about, type, reason, action, message, now, now)
        else:
            event.count += 1
            event.last_ns = now
            event.message = message
        self._events[key] = event
        _forget_oldest(self._events, self._limits.remembered)
        return event

    def _may_speak(self, whose: Hashable, now: int) -> bool:
        """Take one from the object's bucket, if there is one left."""
        burst = float(self._limits.burst)
        left, since = self._buckets.pop(whose, (burst, now))
        if since < now:
            left = min(burst, left + (now - since) / NANOSECONDS / self._limits.refill)
        allowed = left >= 1.0
        self._buckets[whose] = (left - 1.0 if allowed else left, now)
        _forget_oldest(self._buckets, self._limits.remembered)
        return allowed

    def _is_one_of_many(self, group: Hashable, message: str, now: int) -> bool:
        """Whether an object says so many different things for one reason that they are told as one."""
        since, messages = self._alike.pop(group, (now, ()))
        if now - since > self._window_ns:
            since, messages = now, ()
        another = message not in messages
        many = another and len(messages) >= self._limits.alike
        if another and not many:
            messages = (*messages, message)
        self._alike[group] = (since, messages)
        _forget_oldest(self._alike, self._limits.remembered)
        return many


def reference_to(obj: Object) -> dict[str, Any]:
    """An ObjectReference to an object; of what is no text in an object from outside, nothing is referred to."""
    said = obj.get("metadata")
    metadata: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    parts = (
        ("apiVersion", obj.get("apiVersion")),
        ("kind", obj.get("kind")),
        ("namespace", metadata.get("namespace")),
        ("name", metadata.get("name")),
        ("uid", metadata.get("uid")),
        ("resourceVersion", metadata.get("resourceVersion")),
    )
    found = {name: value for name, value in parts if value and isinstance(value, str)}
    found.setdefault("name", "unknown")
    return found


def _forget_oldest(known: "OrderedDict[Hashable, Any]", most: int) -> None:
    while len(known) > most:
        known.popitem(last=False)
