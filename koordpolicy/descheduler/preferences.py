"""Which of other nodes a pod would prefer: that follows from all nodes together, and only few policies ask for it."""

from collections.abc import Sequence

from koordpolicy.algorithms.node_affinity import preference
from koordpolicy.algorithms.work import Work
from koordpolicy.descheduler.snapshot import SeenNode, SeenPod
from koordpolicy.model.facts.movable_pod import PREFERENCE_ELSEWHERE
from koordpolicy.model.placement import PreferredTerm


def note_preferences(nodes: Sequence[SeenNode]) -> Work[None]:
    """Note down for each pod how much the best of the other nodes has of what it prefers, of those that would take it now."""
    ranked: dict[tuple[PreferredTerm, ...], list[tuple[int, SeenNode]]] = {}
    for node in nodes:
        yield
        for pod in node.pods:
            placement = pod.placement
            if placement is None or not placement.preferred:
                continue
            if placement.preferred not in ranked:
                ranked[placement.preferred] = _ranked(placement.preferred, nodes)
                yield
            pod.facts[PREFERENCE_ELSEWHERE] = _best(pod, ranked[placement.preferred])


def _ranked(preferred: tuple[PreferredTerm, ...], nodes: Sequence[SeenNode]) -> list[tuple[int, SeenNode]]:
    """The nodes that have something of it, those with most first."""
    found = [(preference(preferred, node.name, node.sight.node.labels), node) for node in nodes]
    return sorted((one for one in found if one[0] > 0), key=lambda one: -one[0])


def _best(pod: SeenPod, ranked: Sequence[tuple[int, SeenNode]]) -> int:
    return next((much for much, node in ranked if node.row != pod.row and node.takes(pod)), 0)
