"""What can happen in a cluster that lets a pod fit that did not fit before."""

from enum import Enum, auto


class Event(Enum):
    """Something that happened. A filter says which of them can help a pod that it refused."""

    NODE_ADDED = auto()
    NODE_CHANGED = auto()
    METRIC_CHANGED = auto()
    POD_GONE = auto()


EVERY_EVENT = frozenset(Event)
