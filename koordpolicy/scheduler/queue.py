"""The queue: pods that wait for an attempt, that back off, and that nothing can help for now.

    active        a heap by policy's sort keys; `pop` takes the smallest
    backing off   pods whose next attempt is to wait for a time; some of them only while others are active
    unschedulable pods that wait for an event that can help them, or for the time to try anyway

A pod is in exactly one of them. Times are nanoseconds.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter
from typing import Any

from koordpolicy.cluster.events import Event
from koordpolicy.model.pod import PodKey
from koordpolicy.model.time import NANOSECONDS

SortKey = tuple[Any, ...]


@dataclass(slots=True)
class Waiting:
    """A pod in the queue. `attempts` counts those that ended without a node.

    `helped_by` are the events worth a new attempt; `ready_at` is when its back-off ends, `retry_at` when
    it is tried whatever happened. With `when_idle` it is tried earlier when no pod is active.
    """

    key: PodKey
    order: SortKey
    attempts: int = 0
    helped_by: frozenset[Event] = frozenset()
    ready_at: int = 0
    retry_at: int = 0
    when_idle: bool = False
    active: bool = False
    # Marks the entry of the heaps that counts; older ones are passed over.
    ticket: int = field(default=-1, compare=False)


@dataclass(slots=True)
class SchedulingQueue:
    """The three sets. The caller computes sort keys and times, which are policy."""

    _pods: dict[PodKey, Waiting] = field(default_factory=dict)
    _active: list[tuple[SortKey, int, Waiting]] = field(default_factory=list)
    _backing_off: list[tuple[int, int, Waiting]] = field(default_factory=list)
    # Those of them that need not wait when no pod is active, by the second in which their back-off ends, and
    # within it as if they were active.
    _early: list[tuple[int, SortKey, int, Waiting]] = field(default_factory=list)
    # Pods that the same events help stand together: there are few such groups, but maybe many pods.
    _unschedulable: dict[frozenset[Event], dict[PodKey, Waiting]] = field(default_factory=dict)
    _retries: list[tuple[int, int, Waiting]] = field(default_factory=list)
    _tickets: "count[int]" = field(default_factory=count)

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: object) -> bool:
        return key in self._pods

    def get(self, key: PodKey) -> Waiting | None:
        """The entry of a pod; None when it is not in the queue."""
        return self._pods.get(key)

    @property
    def pods(self) -> Iterable[PodKey]:
        """All pods of the queue."""
        return self._pods.keys()

    def add(self, pod: Waiting) -> None:
        """Put a pod among the active ones, whatever was known of it."""
        self.remove(pod.key)
        self._pods[pod.key] = pod
        self._activate(pod)

    def remove(self, key: PodKey) -> None:
        """Forget a pod; nothing happens when it is not there."""
        pod = self._pods.pop(key, None)
        if pod is not None:
            pod.ticket = -1
            self._unschedulable.get(pod.helped_by, {}).pop(key, None)

    def pop(self, now: int) -> Waiting | None:
        """Take the next pod: an active one, else one that may be tried early; None when there is neither."""
        self.tick(now)
        pod = _first(self._active) or _first(self._early)
        if pod is not None:
            self.remove(pod.key)
        return pod

    def put_back(self, pod: Waiting, now: int) -> None:
        """A pod whose attempt ended without a node. Its `helped_by`, `ready_at`, `retry_at` say what now.

        Without an event that could help it only backs off.
        """
        self.remove(pod.key)
        self._pods[pod.key] = pod
        if pod.helped_by:
            pod.active = False
            pod.ticket = next(self._tickets)
            self._unschedulable.setdefault(pod.helped_by, {})[pod.key] = pod
            heapq.heappush(self._retries, (pod.retry_at, pod.ticket, pod))
        else:
            self._wait_or_activate(pod, now)

    @property
    def any_active(self) -> bool:
        """Whether a pod waits for nothing but its turn."""
        return _first(self._active) is not None

    def awaits(self, event: Event) -> bool:
        """Whether there are pods that wait for such an event."""
        if not self._unschedulable:
            return False  # asked after every decision
        return any(pods and event in helped_by for helped_by, pods in self._unschedulable.items())

    def happened(self, event: Event, now: int, helps: Callable[[PodKey], bool] = lambda _key: True) -> None:
        """Move the pods that an event can help out of the unschedulable ones. `helps` looks closer at each."""
        for helped_by, pods in self._unschedulable.items():
            if event in helped_by and pods:
                for pod in [pod for key, pod in pods.items() if helps(key)]:
                    del pods[pod.key]
                    self._wait_or_activate(pod, now)

    def happened_at(self, event: Event, now: int, first: Callable[[PodKey], int | None]) -> None:
        """The same of an event that happened in many places, one after the other: `first` gives the first that can help a pod."""
        moved: list[tuple[int, int, int, Waiting]] = []
        for group, (helped_by, pods) in enumerate(self._unschedulable.items()):
            if event in helped_by:
                for place, (key, pod) in enumerate(pods.items()):
                    at = first(key)
                    if at is not None:
                        moved.append((at, group, place, pod))
        for *_, pod in sorted(moved, key=itemgetter(0, 1, 2)):
            del self._unschedulable[pod.helped_by][pod.key]
            self._wait_or_activate(pod, now)

    def reconsider(self, key: PodKey, now: int) -> None:
        """Try a pod again although no event can help it, once its back-off has ended."""
        pod = self._pods.get(key)
        if pod is not None and self._unschedulable.get(pod.helped_by, {}).pop(key, None) is not None:
            self._wait_or_activate(pod, now)

    def rests(self, key: PodKey) -> bool:
        """Whether a pod is among the unschedulable ones."""
        pod = self._pods.get(key)
        return pod is not None and key in self._unschedulable.get(pod.helped_by, {})

    @property
    def counts(self) -> dict[str, int]:
        """How many pods are active, backing off and unschedulable."""
        stuck = sum(len(pods) for pods in self._unschedulable.values())
        active = sum(pod.active for pod in self._pods.values())
        return {"active": active, "backoff": len(self._pods) - active - stuck, "unschedulable": stuck}

    def tick(self, now: int) -> None:
        """Move the pods whose time has come."""
        while self._retries and self._retries[0][0] <= now:
            _, ticket, pod = heapq.heappop(self._retries)
            if pod.ticket == ticket:
                del self._unschedulable[pod.helped_by][pod.key]
                self._wait_or_activate(pod, now)
        while self._backing_off and self._backing_off[0][0] <= now:
            _, ticket, pod = heapq.heappop(self._backing_off)
            if pod.ticket == ticket:
                self._activate(pod)
        _first(self._early)  # what has become active is dropped there, so that it does not pile up

    def next_time(self, *, retries: bool = True) -> int | None:
        """When the next pod becomes active by time alone; None when no time is awaited.

        Without `retries` the end of back-offs counts alone, not when unschedulable ones are tried whatever happened.
        """
        heaps = (self._backing_off, self._retries) if retries else (self._backing_off,)
        times = [heap[0][0] for heap in heaps if _first(heap) is not None]
        return min(times, default=None)

    def _wait_or_activate(self, pod: Waiting, now: int) -> None:
        if pod.ready_at > now:
            pod.active = False
            pod.ticket = next(self._tickets)
            heapq.heappush(self._backing_off, (pod.ready_at, pod.ticket, pod))
            if pod.when_idle:
                second = pod.ready_at // NANOSECONDS
                heapq.heappush(self._early, (second, pod.order, pod.ticket, pod))
        else:
            self._activate(pod)

    def _activate(self, pod: Waiting) -> None:
        pod.active = True
        pod.ticket = next(self._tickets)
        heapq.heappush(self._active, (pod.order, pod.ticket, pod))


def _first(heap: list[Any]) -> Waiting | None:
    """The pod of a heap's first entry that counts; those before it are dropped. Entries end with ticket and pod."""
    while heap:
        ticket, pod = heap[0][-2:]
        if pod.ticket == ticket:
            assert isinstance(pod, Waiting)
            return pod
        heapq.heappop(heap)
    return None
