"""Layers: a bundle's own files above the packs that it extends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Layer:
    """The files of one bundle or pack, path (as shown to users) to text."""

    name: str
    files: Mapping[str, str] = field(default_factory=dict)


PackFinder = Callable[[str], Layer | None]
"""Finds a built-in pack by name; None when there is none of that name."""


def no_packs(name: str) -> Layer | None:
    """The finder that knows no pack."""
    return None
