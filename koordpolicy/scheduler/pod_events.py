"""What news of a pod on its node mean to pods that wait."""

from collections.abc import Iterator

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView, takes_less


def events_of(known: PodView | None, view: PodView) -> Iterator[Event]:
    """What happened at the node of a pod that is shown there, and was known there as `known` (None: not at all)."""
    if known is None:
        yield Event.POD_PLACED
        return
    if known.pod.labels != view.pod.labels or known.pod.terminating != view.pod.terminating:
        yield Event.POD_CHANGED
    if takes_less(view, known):
        yield Event.POD_GONE
