"""Taints: which nodes a pod tolerates, and how many taints it would rather avoid.

Nodes share few sets of taints, so that each set is looked at once, however many nodes have it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from koordpolicy.model.node import Taint
from koordpolicy.model.placement import Toleration

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"

OF_CONDITIONS: Final = "node.kubernetes.io/"
"""How keys of taints begin that Kubernetes sets by the conditions of a node, and takes away again."""

UNTOLERATED: Final = "node(s) had untolerated taint(s)"
CORDONED: Final = "node(s) were unschedulable"

CORDON: Final = Taint("node.kubernetes.io/unschedulable", NO_SCHEDULE)
"""The taint that a cordoned node counts as having."""


def tolerates_all(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether a pod may go where these taints are. Those that only ask to be avoided don't count."""
    return all(tolerated(tolerations, taint) for taint in taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE))


def tolerated(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations is for the taint."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def avoided(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> int:
    """How many taints ask to be avoided and are not tolerated.

    Tolerations of other effects don't count here, even those whose effect is written out.
    """
    soft = [one for one in tolerations if one.effect in ("", PREFER_NO_SCHEDULE)]
    return sum(1 for taint in taints if taint.effect == PREFER_NO_SCHEDULE and not tolerated(soft, taint))
