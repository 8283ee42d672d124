"""What a pod would leave of devices for usual pods: as a score of nodes, and of the devices of one node."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.device_columns import EVERY
from koordpolicy.algorithms.device_fragmentation import gradient
from koordpolicy.algorithms.device_need import DeviceNeed
from koordpolicy.algorithms.device_pick import Card
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.device_cards import DeviceCards
from koordpolicy.cluster.device_policy import DeviceSort
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.protocol import CPU
from koordpolicy.scheduler.plugins.base import request_of

GRADIENT: Final = "FragmentationGradient"
"""The strategy of the score that is made here."""


def spare_cpu(nodes: NodeView) -> NDArray[np.int64]:
    """What of each node's CPU nobody has requested, in millicores."""
    allocatable, requested = (
        nodes.amount("resources.allocatable", CPU),
        nodes.amount("resources.requested", CPU),
    )
    found: NDArray[np.int64] = allocatable - requested
    return found


def fragmentation_score(
    cards: DeviceCards, needs: Mapping[str, DeviceNeed], pod: PodView, nodes: NodeView
) -> Scores | None:
    """The gradient of fragmentation on each node, of every sort of devices of which usual pods are named."""
    assert cards.policy is not None
    cpu, asked_cpu = spare_cpu(nodes), request_of(pod).get(CPU, 0)
    found: NDArray[np.int64] | None = None
    rows = None if nodes.count == nodes.total else nodes.some(np.arange(nodes.total))
    for type, sort in cards.policy.sorts.items():
        if sort.usual is None:
            continue
        kept, need = cards.fragmentation(type), needs.get(type)
        assert kept is not None
        each, count = (0, 0) if need is None else (need.each.get(sort.words.measured, 0), need.count)
        best = kept.drops(cpu, asked_cpu, each, count, rows)
        if sort.imbalance:
            best = best - sort.imbalance * imbalance(cards, sort, nodes, asked_cpu, each * count)
        score = gradient(best, sort.scale)
        found = score if found is None else found + score
    return found


def imbalance(
    cards: DeviceCards, sort: DeviceSort, nodes: NodeView, asked_cpu: int, asked: int
) -> NDArray[np.float64]:
    """How far the shares of CPU and of devices are apart that are left on each node once a pod is there, 0 to 1."""
    allocatable = nodes.amount("resources.allocatable", CPU)
    rows = EVERY if nodes.count == nodes.total else nodes.some(np.arange(nodes.total))
    total, free = cards.columns(sort.type).sums(sort.words.measured, rows)
    of_cpu = (spare_cpu(nodes) - asked_cpu) / np.maximum(allocatable, 1)
    of_devices = (free - asked) / np.maximum(total, 1)
    found: NDArray[np.float64] = np.clip(np.abs(of_cpu - of_devices), 0, 1)
    return found


def gradients(
    sort: DeviceSort,
    cards: DeviceCards,
    listed: Sequence[Card],
    node: str,
    need: DeviceNeed,
    cpu: int,
    asked_cpu: int,
) -> dict[int, int]:
    """The same of each of the devices that are listed of one node, by its minor; `cpu` is what the node has to spare."""
    kept, row = cards.fragmentation(sort.type), cards.row(node)
    if kept is None or row is None or need.count != 1:
        return {}
    each = need.each.get(sort.words.measured, 0)
    free = [card.free.get(sort.words.measured, 0) for card in listed]
    found = kept.drops_of_devices(row, free, cpu, asked_cpu, each)
    scores = gradient(np.array(found), sort.scale).tolist()
    return {card.minor: score for card, score in zip(listed, scores, strict=True)}
