"""When a pod that found no node is tried again."""

from koordpolicy.algorithms.backoff import backoff
from koordpolicy.cluster.events import Event
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.queue import SortKey, Waiting


def come_back(
    key: PodKey,
    order: SortKey,
    attempts: int,
    helped_by: frozenset[Event],
    waits: tuple[int, int, int],
    now: int,
    *,
    when_idle: bool,
) -> Waiting:
    """The queue's entry of a pod after an attempt. `waits` as from `Profile.waits`, nanoseconds.

    With `when_idle` it may be tried before its back-off ends. That is for pods that were refused: what went
    wrong otherwise would go wrong at once again.
    """
    first, longest, again = waits
    return Waiting(
        key,
        order,
        attempts,
        helped_by,
        ready_at=now + backoff(attempts, first, longest),
        retry_at=now + again,
        when_idle=when_idle and bool(helped_by),
    )
