"""The word of a filter about one node."""

from enum import IntEnum


class Verdict(IntEnum):
    """What a filter says about a node, ordered so that the largest of several is the node's own."""

    PASS = 0
    UNSCHEDULABLE = 1
    """The pod does not fit now; fewer pods on the node might help."""
    UNRESOLVABLE = 2
    """The pod does not fit, and evicting others cannot change that."""

    @property
    def word(self) -> str:
        """The word that Kubernetes' scheduler uses for it."""
        return _WORDS[self]


_WORDS = ("Success", "Unschedulable", "UnschedulableAndUnresolvable")
