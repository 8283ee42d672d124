"""Sorts of pods that are named as usual, as policy writes them."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class UsualPod:
    """A sort of pods: its CPU, what it asks of each of so many devices, the models that it can use (none: any), its weight."""

    cpu: int
    each: int
    devices: int
    weight: float
    models: frozenset[str] = frozenset()


_SORT: Final = re.compile(r"([0-9]{1,12})m(?: ([0-9]{1,3})x([0-9]{1,12})(?: (\S+))?)?", re.ASCII)


def usual_pod(text: str, weight: float) -> UsualPod:
    """A sort of pods as policy writes it: `4000m`, `4000m 1x50`, `8000m 2x100 A100|H100`. Raises ValueError."""
    found = _SORT.fullmatch(text)
    if found is None:
        raise ValueError(f"`{text}` is no pod such as `4000m 1x50` or `8000m 2x100 A100|H100`")
    if weight < 0:
        raise ValueError(f"the weight of `{text}` is below 0")
    cpu, count, each, models = found.groups()
    return UsualPod(
        int(cpu),
        int(each or 0),
        int(count or 0),
        weight,
        frozenset(models.split("|")) if models else frozenset(),
    )
