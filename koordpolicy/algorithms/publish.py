"""From calculated amounts to published ones: normalisation, deductions, and which changes are worth a write."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from koordpolicy.model.quantity import INT64_MAX
from koordpolicy.model.reading import Amounts

_THOUSANDTHS = 1000


@dataclass(frozen=True, slots=True)
class Published:
    """Amounts by resource: what the node offers, and what it would without deductions."""

    offered: Amounts
    origin: Amounts


def normalized_thousandths(milli: int, ratio: float | None) -> int:
    """Millicores times a CPU normalisation above 1, in thousandths of a millicore, truncated, 2⁶³ at most."""
    thousandths = milli * _THOUSANDTHS
    if ratio is None or ratio <= 1:
        return thousandths
    return int(min(float(thousandths) * ratio, float(INT64_MAX)))


def normalized(milli: int, ratio: float | None) -> int:
    """Millicores times a CPU normalisation above 1, rounded up."""
    return -(-normalized_thousandths(milli, ratio) // _THOUSANDTHS)


def published(amounts: Amounts, deducted: Iterable[Amounts]) -> Published:
    """What is left of the amounts, at least nothing."""
    taken = list(deducted)
    offered = {
        resource: max(0, amount - sum(one.get(resource, 0) for one in taken))
        for resource, amount in amounts.items()
    }
    return Published(offered, amounts)


def differs(old: int | None, new: int | None, share: float) -> bool:
    """Whether a change exceeds that share of the old amount. Appearing and vanishing always does."""
    if old is None or new is None:
        return old is not new
    return abs(new - old) * _THOUSANDTHS > old * _THOUSANDTHS * share


def any_differs(old: Mapping[str, int], new: Mapping[str, int | None], share: float) -> bool:
    """Whether one of the new amounts differs enough from the old one of its name."""
    return any(differs(old.get(name), amount, share) for name, amount in new.items())
