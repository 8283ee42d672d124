"""How far an amount moves from one revision to another, over everyday inputs."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Final

from koordpolicy.graph.diff.changes import Moves
from koordpolicy.graph.diff.words import AMOUNTS
from koordpolicy.language.cel.types import Type

_FEWEST: Final = 2
"""Different answers that are told as a range."""

_OF_NODES: Final = frozenset(("node", "zone"))


def moves_of(type: Type, answers: Iterable[tuple[Any, Any]], roots: AbstractSet[str]) -> Moves | None:
    """The range of steps from the old answers to the new ones; None where these are all alike, or no amounts.

    `roots` are the records that the answers depend on. Answers that are no numbers are passed over.
    """
    if type.unit not in AMOUNTS or not roots & {*_OF_NODES, "pod", "container"}:
        return None
    pairs = {pair for pair in answers if all(_is_number(value) for value in pair)}
    if len(pairs) < _FEWEST:
        return None
    steps = [new - old for old, new in pairs]
    shares = [(new - old) / abs(old) * 100 for old, new in pairs if old and new and (old > 0) == (new > 0)]
    has_shares = len(shares) == len(pairs)
    if not has_shares and min(steps) == max(steps):
        return None  # which the example says already
    return Moves(
        type,
        (min(steps), max(steps)),
        (min(shares), max(shares)) if has_shares else None,
        "on everyday nodes" if roots & _OF_NODES else "for everyday pods",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
