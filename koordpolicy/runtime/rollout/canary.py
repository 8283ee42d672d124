"""Which nodes go ahead: by their labels, and by a place that depends on nothing but their name."""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache

from koordpolicy.runtime.rollout.plan import RolloutStep


@lru_cache(maxsize=65_536)
def place_of(node: str) -> float:
    """A node's place from 0 to just below 100, the same for ever: whoever is within 10 % is within 20 %."""
    return int.from_bytes(hashlib.sha256(node.encode()).digest()[:8], "big") / 2**64 * 100.0


def goes_ahead(steps: Iterable[RolloutStep], node: str, labels: Mapping[str, str]) -> bool:
    """Whether the new revision decides about a node; `steps` are the present one and those before it.

    Who is ahead stays ahead: each change between revisions is one that the node's workloads feel.
    """
    return any(_of_step(step, node, labels) for step in steps)


def _of_step(step: RolloutStep, node: str, labels: Mapping[str, str]) -> bool:
    if not step.has_canary or (step.nodes is not None and not step.nodes.matches(labels)):
        return False
    # The hash rounds to 100 only for names that nobody will find; all must still be all.
    return step.share is None or step.share >= 100.0 or place_of(node) < step.share
