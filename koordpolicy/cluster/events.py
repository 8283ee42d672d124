"""What can happen in a cluster that lets a pod fit that did not fit before."""

from enum import Enum, auto


class Event(Enum):
    """Something that happened. A filter says which of them can help a pod that it refused.

    A pod that was resized, and takes less than before, counts as one that is gone.
    """

    NODE_ADDED = auto()
    NODE_CHANGED = auto()
    METRIC_CHANGED = auto()
    POD_GONE = auto()
    POD_PLACED = auto()
    POD_CHANGED = auto()
    NODE_GONE = auto()
    NAMESPACE_CHANGED = auto()
    VOLUMES_CHANGED = auto()
    NETWORK_CHANGED = auto()
    POD_GROUP_CHANGED = auto()
    QUOTA_CHANGED = auto()
    RESERVATION_CHANGED = auto()
    DEVICES_CHANGED = auto()
    CPUS_CHANGED = auto()


EVERY_EVENT = frozenset(Event)
