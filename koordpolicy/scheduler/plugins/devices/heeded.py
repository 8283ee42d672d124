"""What counts of the devices that a pod's annotation says are its own: whoever may change the pod may write there anything.

A pod has devices of the types that it asks for alone, no more of them than it asks for, and of each no more than that means there.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from koordpolicy.algorithms.device_need import DeviceNeed, DeviceRequestError, by_strategy
from koordpolicy.algorithms.device_pick import Card
from koordpolicy.cluster.device_cards import DeviceCards
from koordpolicy.cluster.device_policy import DeviceSort
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.pod_devices import (
    NO_WISHES,
    DeviceHint,
    DeviceShare,
    DeviceWishes,
    Shares,
    read_wishes,
)
from koordpolicy.model.reading import Amounts, ObjectError
from koordpolicy.scheduler.plugins.base import request_of
from koordpolicy.scheduler.plugins.devices.allocation import filled

_ALONE: Final = "DeviceLevel"
_NO_HINT: Final = DeviceHint()


class HeededShares(NamedTuple):
    """What counts, and in words what does not."""

    shares: Shares
    ignored: Sequence[str]


def heeded_shares(cards: DeviceCards, node: str, pod: PodView, said: Shares) -> HeededShares:
    """What counts of what a pod on a node says it has."""
    policy = cards.policy
    if policy is None:
        return HeededShares(said, ())
    try:
        needs = policy.needs(request_of(pod))
    except DeviceRequestError:
        needs = {}
    wishes = _wishes(pod)
    joint = max((needs[type].count for type in wishes.joint if type in needs), default=0)
    found: dict[str, tuple[DeviceShare, ...]] = {}
    ignored: list[str] = []
    for type, listed in said.items():
        need = needs.get(type)
        if need is None:
            if type in policy.sorts:  # nobody is given others here
                ignored.append(f"devices of type {type[:40]}, which it does not ask for")
            continue
        known = _cards(cards, node, type)
        hint = wishes.hints.get(type, _NO_HINT)
        alone = hint.exclusive == _ALONE
        devices = len(listed) if known is None else len(known)
        need = by_strategy(need, hint.strategy, devices, alone=alone)
        most = max(need.count, joint if type in wishes.joint else 0)
        kept = _kept(listed, known, need, policy.sorts[type], functions=hint.functions is not None)[:most]
        if kept != listed:
            ignored.append(
                f"what goes beyond its requests, or beyond the node's devices, of type {type[:40]}"
            )
        if kept:
            found[type] = kept
    return HeededShares(found, ignored)


def _wishes(pod: PodView) -> DeviceWishes:
    try:
        return read_wishes(pod.pod.annotations)
    except ObjectError:
        return NO_WISHES


def _cards(cards: DeviceCards, node: str, type: str) -> Mapping[int, Card] | None:
    """The devices of a type on a node by minor, healthy or not; None where nobody says what there is."""
    if not cards.knows(node):
        return None
    found: dict[int, Card] = {}
    for one in cards.devices(node).devices:
        if one.type == type:
            found.setdefault(one.minor, Card(one.minor, one.resources, one.resources, one.numa, one.pcie))
    return found


def _kept(
    listed: Sequence[DeviceShare],
    known: Mapping[int, Card] | None,
    need: DeviceNeed,
    sort: DeviceSort,
    *,
    functions: bool,
) -> tuple[DeviceShare, ...]:
    """The shares of devices that are there, each device once, with as much of each as is asked for."""
    kept: dict[int, DeviceShare] = {}
    for share in listed:
        card = None if known is None else known.get(share.minor)
        if share.minor in kept or (known is not None and card is None):
            continue
        most: Amounts = need.each if card is None else filled(card, need.each, sort)
        resources = {
            name: min(amount, most[name])
            if name in most
            else amount  # nobody knows yet what it means for others
            for name, amount in share.resources.items()
            if name in most or card is None
        }
        kept[share.minor] = share._replace(
            resources=resources, functions=share.functions[:1] if functions else ()
        )
    return tuple(kept.values())
