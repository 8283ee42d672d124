"""Which nodes and pods go ahead: by their labels, and by a place that depends on nothing but their name."""

import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache

from koordpolicy.model.labels import LabelSelector
from koordpolicy.runtime.policies.gating import NodePart
from koordpolicy.runtime.rollout.plan import RolloutStep


@lru_cache(maxsize=65_536)
def place_of(name: str) -> float:
    """A node's or pod's place from 0 to just below 100, the same for ever: whoever is within 10 % is within 20 %."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64 * 100.0


def node_parts(steps: Iterable[RolloutStep]) -> tuple[NodePart, ...]:
    """The nodes that go ahead; `steps` are the present one and those before it.

    Who is ahead stays ahead: each change between revisions is one that the node's workloads feel.
    """
    return tuple(NodePart(step.nodes, step.share) for step in steps if step.of_nodes)


def goes_ahead(parts: Iterable[NodePart], node: str, labels: Mapping[str, str]) -> bool:
    """Whether the new revision decides about a node."""
    return any(_within(part.share, part.nodes, node, labels) for part in parts)


def pod_goes_ahead(steps: Iterable[RolloutStep], pod: str, labels: Mapping[str, str]) -> bool:
    """Whether the new revision places a pod (`NAMESPACE/NAME`), in the same way.

    By name, not by uid: a pod of a StatefulSet that comes again is placed by the same revision.
    """
    return any(step.of_pods and _within(step.share, step.pods, pod, labels) for step in steps)


def _within(
    share: float | None, selector: LabelSelector | None, name: str, labels: Mapping[str, str]
) -> bool:
    if selector is not None and not selector.matches(labels):
        return False
    # The hash rounds to 100 only for names that nobody will find; all must still be all.
    return share is None or share >= 100.0 or place_of(name) < share
