"""The overcommitted resources of NUMA zones, as the node's topology object lists them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from koordpolicy.algorithms.publish import differs, normalized_thousandths
from koordpolicy.manager.controllers.overcommit import Offer
from koordpolicy.manager.controllers.publishing import PublishPolicy
from koordpolicy.model.numa import is_zone
from koordpolicy.model.protocol import CPU, MEMORY
from koordpolicy.model.quantity import Quantity, QuantityError, amount
from koordpolicy.model.reading import Json, objects, text

_AMOUNTS: Final = ("capacity", "allocatable", "available")


def with_offers(
    topology: Json, offers: Sequence[Offer], names: Mapping[str, str], rules: PublishPolicy, *, force: bool
) -> Json:
    """The topology object with what its zones offer; the same object when no amount is worth a write.

    Zones without an offer keep what they have. `names` are the resources' names by native resource, `force`
    writes small differences too. Raises ObjectError for a malformed object.
    """
    waiting = iter(offers)
    zones = [_zone(zone, waiting, names, rules, force=force) for zone in objects(topology, "zones")]
    same = all(new is old for new, old in zip(zones, objects(topology, "zones"), strict=True))
    return topology if same else {**topology, "zones": zones}


def _zone(
    zone: Json, waiting: Iterator[Offer], names: Mapping[str, str], rules: PublishPolicy, *, force: bool
) -> Json:
    """The zone with the next offer, when it is one of those that offers are for."""
    offer = next(waiting, None) if is_zone(zone) else None
    if offer is None:
        return zone
    quantities = {
        # Not rounded to whole millicores here, unlike the node's own amount.
        names[CPU]: Quantity.of_milli(normalized_thousandths(offer.cpu, rules.ratio)),
        names[MEMORY]: Quantity.of(offer.memory),
    }
    before = {text(entry, "name"): entry for entry in objects(zone, "resources")}
    after = dict(before)
    for name, quantity in quantities.items():
        entry = before.get(name, {"name": name})
        news = _amounts_to_write(entry, name, quantity, rules.share, force=force)
        if news:
            after[name] = {**entry, **news}
    if after == before:
        return zone
    return {**zone, "resources": [after[name] for name in sorted(after)]}


def _amounts_to_write(
    entry: Json, name: str, quantity: Quantity, share: float, *, force: bool
) -> dict[str, str]:
    """The amounts of an entry that are to be written."""
    written = str(quantity)
    return {
        key: written
        for key in _AMOUNTS
        if entry.get(key) != written and (force or differs(_amount(entry, name, key), quantity.units, share))
    }


def _amount(entry: Json, name: str, key: str) -> int | None:
    """What stands there; None for nothing, and for what is no amount."""
    try:
        return None if entry.get(key) is None else amount(name, entry[key])
    except QuantityError:
        return None
