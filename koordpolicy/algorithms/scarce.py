"""Keeping pods that don't need it away from what is scarce: a pod without GPUs from a node with GPUs.

Nodes share few sets of resources, so that each set is looked at once, however many nodes have it.
"""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import Final

from koordpolicy.algorithms.fit_score import BEST
from koordpolicy.model.protocol import PODS
from koordpolicy.model.reading import Amounts

_UNCOUNTED: Final = frozenset({PODS})


def kinds_of(amounts: Amounts) -> frozenset[str]:
    """The resources of which there is something; the number of pods is none of them."""
    return frozenset(resource for resource, value in amounts.items() if value > 0) - _UNCOUNTED


def scarce_score(node: AbstractSet[str], pod: AbstractSet[str], scarce: Collection[str]) -> int:
    """How little of a node's other resources is scarce, 0 to 100.

    `node` and `pod` are what the node has and the pod requests. 100 where nothing scarce would be left idle.
    """
    spare = node - pod
    hit = spare & frozenset(scarce)
    return (len(spare) - len(hit)) * BEST // len(spare) if hit else BEST
