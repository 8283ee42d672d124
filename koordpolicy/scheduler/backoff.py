"""When a pod that found no node is tried again."""

from koordpolicy.mechanism.backoff import backoff
from koordpolicy.scheduler.decision import PodKey
from koordpolicy.scheduler.events import Event
from koordpolicy.scheduler.queue import SortKey, Waiting


def come_back(
    key: PodKey,
    order: SortKey,
    attempts: int,
    helped_by: frozenset[Event],
    waits: tuple[int, int, int],
    now: int,
) -> Waiting:
    """The queue's entry of a pod after an attempt. `waits` as from `Profile.waits`, nanoseconds."""
    first, longest, again = waits
    return Waiting(
        key,
        order,
        attempts,
        helped_by,
        ready_at=now + backoff(attempts, first, longest),
        retry_at=now + again,
    )
