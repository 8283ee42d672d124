"""On which NUMA zones of its node a pod could have the devices that it asks for: what devices say where CPUs, memory and devices are
to lie together (`algorithms/numa_merge.py`).
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.device_need import DeviceNeed, DeviceRequestError
from koordpolicy.algorithms.device_pick import NO_NUMA, Unpicked
from koordpolicy.algorithms.numa_merge import Hint, Hints, zone_sets
from koordpolicy.algorithms.zone_allocation import NoRoom
from koordpolicy.algorithms.zone_columns import Beside, RoomColumns
from koordpolicy.cluster.device_cards import DeviceCards
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod_devices import NO_WISHES, Shares, read_wishes
from koordpolicy.scheduler.plugins.base import request_of
from koordpolicy.scheduler.plugins.devices.allocation import Dealing

TOO_FEW: Final = "Insufficient NUMA Scoped Devices"


class DeviceHints:
    """Of one pod on one node, whose devices are `dealt` so."""

    __slots__ = ("_dealt",)

    def __init__(self, dealt: Dealing) -> None:
        self._dealt = dealt

    def hints(self) -> Hints:
        """One of each sort for every set of zones that has enough. Those that the pod would get anyway score as policy says.

        Raises NoRoom.
        """
        dealt, policy = self._dealt, self._dealt.cards.policy
        assert policy is not None
        sorts = [policy.sorts[type] for type in dealt.needs if policy.sorts[type].zoned]
        zones = {
            card.numa
            for sort in sorts
            for card in dealt.cards.cards(dealt.node, sort.type)
            if card.total and card.numa != NO_NUMA
        }
        if not zones:
            return {}  # where nobody says where devices are, any zones will do
        try:
            anyway = dealt.shares()
        except Unpicked as why:
            raise NoRoom(str(why)) from why
        found: list[tuple[int, bool]] = []
        for mask in zone_sets(sorted(zones)):
            try:
                here = dealt.shares(mask)
            except Unpicked:
                continue
            found.append((mask, _minors(here) == _minors(anyway)))
        if not found:
            raise NoRoom(TOO_FEW)
        least = min(mask.bit_count() for mask, _ in found)
        return {
            sort.type: [
                Hint(mask, mask.bit_count() == least, sort.zone_score if same else 0) for mask, same in found
            ]
            for sort in sorts
        }

    def fits(self, zones: int | None) -> bool:
        """Whether there are enough on these zones (a mask; None: on any)."""
        try:
            self._dealt.shares(zones)
        except Unpicked:
            return False
        return True


def _minors(shares: Shares) -> Mapping[str, frozenset[int]]:
    return {type: frozenset(share.minor for share in listed) for type, listed in shares.items()}


class HintsOfDevices:
    """What devices say about one pod, of whatever node."""

    __slots__ = ("_cards", "_needs", "_pod", "_wishes")

    def __init__(self, cards: DeviceCards, pod: PodView, needs: Mapping[str, DeviceNeed]) -> None:
        self._cards, self._pod, self._needs = cards, pod, needs
        self._wishes = read_wishes(pod.pod.annotations)

    def on(
        self, node: str, spare_cpu: int = 0, lender: str = "", *, restricted: bool = False
    ) -> list[DeviceHints]:
        """What they say on a node; nothing where it lists none."""
        if not self._cards.knows(node):
            return []
        dealt = Dealing(
            self._cards, node, self._pod, self._needs, self._wishes, spare_cpu, lender, restricted
        )
        return [DeviceHints(dealt)]

    def beside(self, nodes: NodeView, rooms: RoomColumns) -> Beside:
        """In which zones of all nodes there are enough, as far as numbers tell that."""
        cards, policy, total = self._cards, self._cards.policy, nodes.total
        assert policy is not None
        rows, places = len(rooms), rooms.most_zones
        zones, told = np.ones((rows, places), np.bool_), np.zeros(rows, np.bool_)
        unsure = np.zeros(rows, np.bool_)
        listed = cards.listed()
        for type, need in self._needs.items():
            if not policy.sorts[type].zoned:
                continue
            columns = cards.columns(type)
            here: Mask = listed & columns.zoned
            told[:total] |= here
            counts = columns.fitting_in_zones(need.each, rooms.numbers[:total, :places])
            for place, count in enumerate(counts):
                zones[:total, place] &= (count >= need.count) | ~here
        whole = any(not need.shared for need in self._needs.values())
        templated = any(policy.sorts[type].by_template(need) for type, need in self._needs.items())
        if self._wishes is not NO_WISHES or templated or (whole and cards.linked):
            unsure[:total] = told[:total]
        return Beside(zones | unsure[:, np.newaxis], told, unsure)


def hints_of_devices(cards: DeviceCards, pod: PodView) -> HintsOfDevices | None:
    """What devices say about a pod; None where it asks for none that lie in zones. Raises ObjectError."""
    policy = cards.policy
    if policy is None or not cards.known:
        return None
    try:
        needs = policy.needs(request_of(pod))
    except DeviceRequestError:
        return None  # the plugin DeviceShare says what is wrong
    if not any(policy.sorts[type].zoned for type in needs):
        return None
    return HintsOfDevices(cards, pod, needs)
