"""Which plugins of a Koordinator's configuration are in use."""

from collections.abc import Sequence
from typing import Final

EVERY: Final = "*"


def merged_plugins(defaults: Sequence[str], enabled: Sequence[str], disabled: Sequence[str]) -> list[str]:
    """Defaults that are not disabled, where `*` disables all of them, then what is enabled beside them, in its order.

    A default that is enabled, too, keeps its place.
    """
    off = frozenset(disabled)
    kept = [] if EVERY in off else [one for one in defaults if one not in off]
    return [*kept, *(one for one in enabled if one not in kept)]
