"""Which nodes have the devices that a pod asks for, and how good they are, in columns over all nodes.

Only where a pod says how it wants them, or a node deals whole cards out by partitions, is a node looked at by itself.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.device_columns import EVERY
from koordpolicy.algorithms.device_need import DeviceNeed, DeviceRequestError, by_strategy
from koordpolicy.algorithms.device_pick import Unpicked
from koordpolicy.algorithms.device_score import FillStrategy
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.device_cards import DeviceCards
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.state import ClusterState
from koordpolicy.model.pod_devices import KEYS, NO_WISHES, DeviceWishes, read_wishes
from koordpolicy.model.protocol import DEVICE_ALLOCATED
from koordpolicy.scheduler.plugins.base import RefusedNodes, Said, request_of
from koordpolicy.scheduler.plugins.devices.allocation import allocate, honors, insufficient
from koordpolicy.scheduler.plugins.devices.fragmentation import GRADIENT, fragmentation_score
from koordpolicy.scheduler.plugins.parameters import Parameters, text, weights
from koordpolicy.scheduler.plugins.verdicts import Verdicts, refuses_none

POLICY: Final = "Policy"
_SAID: Final = (*sorted(KEYS), DEVICE_ALLOCATED)
_STRATEGY: Final = FillStrategy.LEAST_ALLOCATED


def asks_for_devices(pod: PodView, state: ClusterState) -> bool:
    """Whether a pod asks for devices that the scheduler deals out."""
    cards = state.cards
    if not cards.known:
        return False  # asked several times of every pod
    return cards.policy is not None and not cards.policy.names.isdisjoint(request_of(pod))


def devices_wanted(pod: PodView, state: ClusterState, _said: Said) -> Hashable | None:
    """What stays equal as long as the answers about devices do; None for a pod that asks for none."""
    if not asks_for_devices(pod, state):
        cards = state.cards
        # What other pods leave of devices may count for pods without any, too.
        return cards.version if cards.known and cards.policy is not None and cards.policy.measures else None
    annotations = pod.pod.annotations
    said = () if KEYS.isdisjoint(annotations) else tuple(map(annotations.get, _SAID))
    assert state.cards.policy is not None
    labels = pod.pod.labels
    return state.cards.version, said, *[labels.get(key) for key in state.cards.policy.isolation]


def rows_of(nodes: NodeView) -> Any:
    """The rows of the nodes that are looked at."""
    return EVERY if nodes.count == nodes.total else nodes.some(np.arange(nodes.total))


def _needs(pod: PodView, cards: DeviceCards) -> Mapping[str, DeviceNeed]:
    """What a pod asks for, of what is dealt out. Raises DeviceRequestError."""
    return {} if cards.policy is None else cards.policy.needs(request_of(pod))


def devices_free(pod: PodView, nodes: NodeView, _parameters: Parameters) -> Verdicts:
    """The nodes that have too few devices with so much free. One that lists none is let pass: its kubelet deals them out."""
    cards = nodes.state.cards
    try:
        needs = _needs(pod, cards)
    except DeviceRequestError as error:
        everywhere = np.ones((1, nodes.count), np.bool_)
        return Verdicts((str(error),), everywhere, everywhere[0])
    if not needs:
        return refuses_none(("devices",), nodes.count)  # whoever measures filters asks of any pod
    wishes = read_wishes(pod.pod.annotations)
    listed = nodes.some(cards.listed())
    found = _Refused(nodes.count)
    for type, asked in needs.items():
        hint = wishes.hints.get(type)
        # Of all devices that a hint selects at least one has to have it.
        need = asked if hint is None else by_strategy(asked, hint.strategy, 1)
        columns, rows = cards.columns(type), rows_of(nodes)
        few = columns.lacking(need.each, need.count, rows)
        if np.count_nonzero(few) and np.count_nonzero(few := few & listed):  # a fifth of the time of `any`
            short = np.flatnonzero(few)
            never = np.zeros_like(few)
            these = short if rows is EVERY else rows[short]
            never[short] = columns.fitting(need.each, these, empty=True) < need.count
            found.add(insufficient(type), few, never)
        if need.shared:
            _not_shared(found, pod, nodes, type, listed)
    _look_closer(found, pod, nodes, needs, wishes, listed)
    return found.verdicts()


def _not_shared(found: "_Refused", pod: PodView, nodes: NodeView, type: str, listed: Mask) -> None:
    """The nodes whose devices are not shared, or not with this pod."""
    cards = nodes.state.cards
    assert cards.policy is not None
    sort = cards.policy.sorts[type]
    isolated = pod.pod.labels.get(sort.isolation) if sort.isolation else None
    if isolated:
        codes, absent = nodes.label(sort.isolation)
        others = listed & (codes != nodes.code(isolated))
        if absent is not None:
            others |= listed & absent
        found.add(f"node(s) do not keep pods on {type} devices apart by {isolated}", others, others)
    if sort.unshared:
        models = cards.columns(type).models[rows_of(nodes)]
        for model in sorted(sort.unshared & set(models.tolist())):
            whole: Mask = listed & (models == model)
            found.add(f"{type} devices of the model {model} are not shared", whole, whole)


class _Refused:
    """Who is refused for which reason."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._never: Mask | None = None
        self._by_reason: dict[str, Mask] = {}

    def add(self, reason: str, nodes: Mask, never: Mask) -> None:
        """These nodes are refused, some of them whoever leaves."""
        self._never = never if self._never is None else self._never | never
        known = self._by_reason.get(reason)
        self._by_reason[reason] = nodes if known is None else known | nodes

    @property
    def any(self) -> Mask:
        """The nodes that are refused."""
        masks = list(self._by_reason.values())
        found: Mask = np.logical_or.reduce(masks) if masks else np.zeros(self._count, np.bool_)
        return found

    def verdicts(self) -> Verdicts:
        """All of it."""
        if self._never is None:
            return refuses_none(("devices",), self._count)
        refused = np.vstack(list(self._by_reason.values()))
        return Verdicts(tuple(self._by_reason), refused, self._never, none=not refused.any())


def _look_closer(
    found: _Refused,
    pod: PodView,
    nodes: NodeView,
    needs: Mapping[str, DeviceNeed],
    wishes: DeviceWishes,
    listed: Mask,
) -> None:
    """Try the nodes one by one of which more has to hold than that enough devices are free."""
    cards = nodes.state.cards
    assert cards.policy is not None
    whole = templated = False
    for type, need in needs.items():
        whole |= not need.shared
        templated |= cards.policy.sorts[type].by_template(need)
    if wishes is NO_WISHES and not templated and not (whole and cards.linked):
        return
    left: NDArray[np.intp] = np.flatnonzero(listed & ~found.any)
    names = nodes.names()
    for at in left.tolist():
        name = nodes.text(int(names[at]))
        if wishes is NO_WISHES and not templated and not honors(cards.devices(name), wishes):
            continue
        try:
            allocate(cards, name, pod, needs, wishes)
        except Unpicked as why:
            here = np.zeros(nodes.count, np.bool_)
            here[at] = True
            found.add(str(why), here, np.zeros_like(here) if why.resolvable else here)


def devices_score(pod: PodView, nodes: NodeView, parameters: Parameters) -> Scores | None:
    """How full the devices of nodes would be, or how empty, by weighted resources of each type that is asked for."""
    cards = nodes.state.cards
    try:
        needs = _needs(pod, cards)
    except DeviceRequestError:
        return None
    strategy, weighed = parameters.once(_scored)
    if strategy == GRADIENT:
        return fragmentation_score(cards, needs, pod, nodes)
    rows = rows_of(nodes)
    if strategy == POLICY:
        return _said(pod, needs, cards, rows)
    score: Scores | None = None
    for type, need in needs.items():
        filled = cards.columns(type).filled(need.each, weighed, FillStrategy(strategy), rows)
        score = filled if score is None else score + filled
    return np.zeros(nodes.count, np.int64) if score is None else score


def _scored(parameters: Parameters) -> tuple[str, Mapping[str, int]]:
    return text(parameters, "strategy", _STRATEGY), weights(parameters)


def _said(pod: PodView, needs: Mapping[str, DeviceNeed], cards: DeviceCards, rows: Any) -> Scores | None:
    """What policy says that nodes are worth by their devices, of each type that is asked for. Raises CelError."""
    found: NDArray[np.int64] | None = None
    for type, need in needs.items():
        sort = None if cards.policy is None else cards.policy.sorts[type]
        if sort is None or sort.score is None:
            continue
        each = need.each.get(sort.words.measured, 0)
        score = cards.scores(type).of(sort.score, pod.facts, need, each, rows)
        found = score if found is None else found + score
    return found


_FEW: Final = 3
"""Nodes that are told of."""


def devices_advice(pod: PodView, _parameters: Parameters, refused: RefusedNodes) -> Iterator[str | None]:
    """How near the nodes came that have most: `n1: 1/8 gpu has 30 % free, the pod asks 40 %`."""
    state = refused.state
    if state is None or state.cards.policy is None:
        return
    try:
        needs = _needs(pod, state.cards)
    except DeviceRequestError:
        return
    for type, need in needs.items():
        measured = state.cards.policy.sorts[type].words.measured
        asked = need.each.get(measured)
        if asked is None:
            continue
        said = []
        for row in refused.rows.tolist():
            name = refused.table.name(row)
            cards = state.cards.cards(name, type)
            free = [card.free.get(measured, 0) for card in cards]
            most = max(free, default=0)
            if most:
                text = f"{name}: {free.count(most)}/{len(free)} {type} has {most} % free"
                said.append((-most, name, text))
            if row % 256 == 255:
                yield None
        wanted = f"the pod asks {asked} %" + (f" of each of {need.count}" if need.count > 1 else "")
        for _, _, shown in sorted(said)[:_FEW]:
            yield f"{shown}, {wanted}"
