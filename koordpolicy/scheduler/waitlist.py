"""The pods that wait for a node, and what is known of each beside its place in the queue."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from koordpolicy.algorithms.backoff import backoff
from koordpolicy.cluster.events import EVERY_EVENT, Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.pod import Pod, PodKey
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.backoff import come_back
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.hints import Hints, RecordsOf
from koordpolicy.scheduler.profile import Profile
from koordpolicy.scheduler.queue import SchedulingQueue, Waiting
from koordpolicy.scheduler.sortkeys import LAST

FAILED_FIRST: Final = NANOSECONDS
FAILED_LONGEST: Final = 300 * NANOSECONDS
"""First and longest back-off, in nanoseconds, after a failure that nobody foresaw."""

_QUEUED_AT: Final = "queuedAt"


class Waitlist:
    """All pods that wait, those with gates among them. `pods` are they, `last` is why those that were looked at
    found no node, `away` are those that were given into other hands and keep their attempts meanwhile.

    `clock` gives nanoseconds since 1970. `begin` comes before anything else, and again with each profile: then all
    pods have to `enter` anew.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.pods: dict[PodKey, PodView] = {}
        self.last: dict[PodKey, PodDecision] = {}
        self.away: set[PodKey] = set()
        self.gate: Callable[[PodView], bool] = lambda view: False
        """Whether a pod is to stay out of the queue for now."""
        self._clock = clock
        self._attempts: dict[PodKey, int] = {}
        self._since: dict[PodKey, int] = {}
        self._early: set[PodKey] = set()
        """The pods whose latest attempt came before the end of their back-off."""

    def begin(self, profile: Profile, hints: Hints, records: RecordsOf) -> None:
        """Order pods as a profile says from now on."""
        self._records = records
        self._profile = profile
        read = profile.order.facts
        self._ordered_by = (
            tuple(path for _, path in read) if all(root == "pod" and path for root, path in read) else None
        )
        """The facts of a pod that its place follows from, if from nothing else: few as a rule, and each pod has one."""
        self._hints = hints
        self._queue = SchedulingQueue()

    def next(self) -> PodView | None:
        """The pod to decide on now, which leaves the queue; None when none is due."""
        now = self._clock()
        waiting = self._queue.pop(now)
        if waiting is None:
            return None
        if waiting.ready_at > now:
            self._early.add(waiting.key)
        return self.pods[waiting.key]

    def take(self, key: PodKey) -> PodView:
        """A pod that waits is decided on now although it is not its turn; it leaves the queue. Raises KeyError."""
        view = self.pods[key]
        self._queue.remove(key)
        return view

    def may_be_tried(self, key: PodKey) -> bool:
        """Whether a pod waits, and for nothing that it says itself."""
        view = self.pods.get(key)
        try:
            return view is not None and not view.placement.gates
        except ObjectError:
            return True  # the attempt will say what is wrong

    def is_due(self, key: PodKey) -> bool:
        """Whether a pod waits for nothing but its turn."""
        waiting = self._queue.get(key)
        return waiting is not None and waiting.active

    def next_time(self, *, retries: bool = True) -> int | None:
        """When a pod becomes due by time alone; None when no time is awaited. `retries` as of `SchedulingQueue`."""
        return self._queue.next_time(retries=retries)

    @property
    def counts(self) -> dict[str, int]:
        """How many pods wait: to be tried, for their back-off to end, for something to happen, for their gates."""
        counts = self._queue.counts
        return {**counts, "gated": len(self.pods) - sum(counts.values())}

    def happened(self, event: Event, node: str | None = None, changed: Collection[str] | None = None) -> None:
        """Something happened, to a node for the most part; `changed` are the facts of it that are others now."""
        if self._queue.awaits(event):
            helps = self._hints.about(event, node, changed, self.pods, self.last)
            self._queue.happened(event, self._clock(), helps)

    def reported(self, nodes: Sequence[str]) -> None:
        """These nodes have reported, all at once."""
        event = Event.METRIC_CHANGED
        if nodes and self._queue.awaits(event):
            self._queue.happened_at(
                event, self._clock(), self._hints.first(event, nodes, self.pods, self.last)
            )

    def reconsider(self, key: PodKey) -> None:
        """What refuses a pod is not what refused it: try it again once its back-off has ended."""
        self._queue.reconsider(key, self._clock())

    def has_turn(self, key: PodKey) -> bool:
        """Whether a pod is to be tried, at once or after its back-off, whatever happens."""
        return key in self._queue and not self._queue.rests(key)

    @property
    def idle(self) -> bool:
        """Whether no pod is due that is not backing off."""
        return not self._queue.any_active

    def rests(self, key: PodKey) -> bool:
        """Whether a pod waits for something to happen, rather than for its turn or the end of its back-off."""
        return self._queue.rests(key)

    def is_gated(self, key: PodKey) -> bool:
        """Whether a pod waits outside the queue: a gate keeps it there, of its own or of a plugin."""
        return key in self.pods and key not in self._queue

    def leave(self, key: PodKey, *, keeping_attempts: bool = False) -> None:
        """A pod does not wait any more."""
        self._queue.remove(key)
        self.pods.pop(key, None)
        if not keeping_attempts:
            self._attempts.pop(key, None)
            self.away.discard(key)
        self._since.pop(key, None)
        self._early.discard(key)
        self.last.pop(key, None)

    def update(self, view: PodView) -> None:
        """A pod that waits is new, or has changed in something that decisions may depend on.

        Its status is not such a thing: what we write there ourselves must not bring it back at once.
        """
        known = self.pods.get(view.pod.key)
        if known is None or known.facts != view.facts or _spec(known.pod) != _spec(view.pod):
            self.enter(view)
        else:
            self.pods[view.pod.key] = view

    def enter(self, view: PodView) -> None:
        """Put a pod into the queue; one that backs off goes on doing so, and an early one stays early."""
        key, now = view.pod.key, self._clock()
        self.pods[key] = view
        self._since.setdefault(key, now)
        before = self._queue.get(key)
        try:
            gated = bool(view.placement.gates)
        except ObjectError:
            gated = False  # the attempt will say what is wrong
        if gated or self.gate(view):
            self._queue.remove(key)
            return
        order = self._profile.sort_key(self._records_of_order(view))
        waiting = Waiting(key, order, self._attempts.get(key, 0))
        if before is not None and not before.active and before.ready_at > now:
            waiting.ready_at, waiting.when_idle = before.ready_at, before.when_idle
            self._queue.put_back(waiting, now)
        else:
            self._queue.add(waiting)

    def refused(self, view: PodView, decision: PodDecision) -> None:
        """A pod found no node."""
        key = view.pod.key
        self.pods[key] = view
        self.last[key] = decision
        if decision.passed_on:
            self.away.add(key)
        self._put_back(view, self._helped_by(view, decision))

    def again(self, view: PodView) -> None:
        """A pod is to be tried again after a back-off: its write failed, or it comes back from other hands."""
        key = view.pod.key
        self.away.discard(key)
        self.pods[key] = view
        self._put_back(view, frozenset())

    def failed(self, view: PodView, decision: PodDecision) -> None:
        """A pod could not be decided on for a reason that nobody foresaw.

        It comes back, too, after a back-off, last of those that are due then: policy, which may be what fails, is not
        asked when, nor in which order.
        """
        key, now = view.pod.key, self._clock()
        self.pods[key] = view
        self.last[key] = decision
        self._since[key] = now
        attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
        ready_at = now + backoff(attempts, FAILED_FIRST, FAILED_LONGEST)
        self._queue.put_back(Waiting(key, LAST, attempts, ready_at=ready_at), now)

    def _put_back(self, view: PodView, helped_by: frozenset[Event]) -> None:
        key = view.pod.key
        self._since[key] = self._clock()
        attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
        records = self._records_of(view)
        # Of two attempts in a row one at most is early: however much happens, back-off bounds their number.
        early = key in self._early
        self._early.discard(key)
        waiting = come_back(
            key,
            self._profile.sort_key(records),
            attempts,
            helped_by,
            self._profile.waits(records),
            self._clock(),
            when_idle=not early and self._profile.tries_when_idle(records),
        )
        self._queue.put_back(waiting, self._clock())

    def _helped_by(self, view: PodView, decision: PodDecision) -> frozenset[Event]:
        """The events that can help a pod: those that can help against any of its refusals."""
        if decision.problem or decision.route is not None:
            return frozenset()
        if decision.ahead:
            return EVERY_EVENT  # the filters that refuse it are not of this profile
        return self._hints.helped_by(view, decision)

    def _records_of_order(self, view: PodView) -> Mapping[str, Any]:
        """The same with no more than what the order reads."""
        if self._ordered_by is None:
            return self._records_of(view)
        facts = view.facts
        pod: dict[str, Any] = {path: facts[path] for path in self._ordered_by if path in facts}
        pod[_QUEUED_AT] = Timestamp(self._since[view.pod.key])
        return {"pod": pod}

    def _records_of(self, view: PodView) -> Mapping[str, Any]:
        facts = {**view.facts, _QUEUED_AT: Timestamp(self._since[view.pod.key])}
        return self._records(facts, view.pod.namespace)


def _spec(pod: Pod) -> object:
    return pod.raw.get("spec")
