"""Ratios of nodes: which are believed, when they are written, and what allocatable amounts become of them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.model.protocol import CPU
from koordpolicy.model.quantity import INT64_MAX
from koordpolicy.model.reading import Amounts

_THOUSANDTHS = 1000


def ratio_text(ratio: float) -> str:
    """A ratio as annotations have it, with two decimals; a tie of the binary value goes to the even digit."""
    return f"{ratio:.2f}"


def ratios_text(ratios: Mapping[str, float]) -> str:
    """Ratios by resource as a JSON object, by name."""
    return "{" + ",".join(f"{json_text(name)}:{ratio_text(ratios[name])}" for name in sorted(ratios)) + "}"


def ratio_differs(old: float | None, new: float, by: float) -> bool:
    """Whether a ratio, as it is written, is another by more than that. Appearing always does."""
    return old is None or abs(float(ratio_text(new)) - old) > by


@dataclass(frozen=True, slots=True)
class Amplified:
    """Allocatable amounts after amplification (those that change, by name), and the amounts before it that are kept."""

    allocatable: Amounts
    raw: Amounts


def amplify(
    ratios: Mapping[str, float], raw: Amounts, old: Amounts, new: Amounts, resources: Collection[str]
) -> Amplified:
    """What is stored of the allocatable amounts `new` that a kubelet reports, where `old` stands.

    `raw` are the amounts that were kept, empty for none. They are taken anew where the report differs from what stands;
    a report that happens to equal the amplified amount is not seen as one. Ratios of 1 or less change nothing.
    CPU in millicores, others in whole units, rounded up. The arithmetic is Koordinator's, in floating point.
    """
    if not raw or any(old.get(name) != new.get(name) for name in resources):
        raw = {name: new[name] for name in resources if name in new}
    return Amplified(
        {
            name: _times(name, raw[name], ratios[name])
            for name in resources
            if name in raw and ratios.get(name, 1.0) > 1
        },
        raw,
    )


def _times(name: str, amount: int, ratio: float) -> int:
    if name == CPU:
        return int(min(amount * ratio, float(INT64_MAX)))
    return -(-int(min(float(amount * _THOUSANDTHS) * ratio, float(INT64_MAX))) // _THOUSANDTHS)
