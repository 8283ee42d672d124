"""Did you mean? The candidate that a mistyped name most likely stood for."""

import re
from collections.abc import Iterable

_LONGEST = 120
_MOST_CANDIDATES = 1_000
"""How many of a like length are compared. Nobody's slip is worth more time."""
_SHORTEST_PART = 3
_SEPARATORS = re.compile(r"[\s._/-]+")


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The closest of `candidates` to `name`, or None when none is close enough to be meant.

    A name that differs only in case or separators (`cpu_reclaim` for `cpuReclaim`) is always close. Else one
    slip (a letter missing, added, wrong, or two swapped) is forgiven for every three letters, at least one and
    at most four. Where candidates are very many, the first ones are compared. Of equally close candidates one of the same letters is taken, else the first.
    Where none is close, the only one that begins so is: half of a name at least, and three letters (`marg` for `margin`); else the
    only one of which it is the last word (`bands` for `permittedBands`).
    """
    if not name or len(name) > _LONGEST:
        return None
    plain = _plain(name)
    best: str | None = None
    nearest_yet = min(4, max(1, len(name) // 3)) + 1, False
    compared = 0
    longer: list[str] = []
    ending: list[str] = []
    for candidate in candidates:
        if candidate == name:
            continue
        other = _plain(candidate)
        if other == plain and plain:
            return candidate
        if other.startswith(plain) and len(plain) >= max(_SHORTEST_PART, len(other) / 2):
            longer.append(candidate)
        if len(plain) >= _SHORTEST_PART and _ends_in(candidate, name):
            ending.append(candidate)
        most, _ = nearest_yet
        if abs(len(other) - len(plain)) > most or len(other) <= 1:
            continue
        compared += 1
        if compared > _MOST_CANDIDATES:
            break
        distance = _distance(plain, other, most + 1)
        found = distance, sorted(other) != sorted(plain)
        if distance < len(plain) and found < nearest_yet:
            best, nearest_yet = candidate, found
    if best is not None:
        return best
    return next((some[0] for some in (longer, ending) if len(some) == 1), None)


def _ends_in(candidate: str, word: str) -> bool:
    """Whether a name in camel case has this as its last word."""
    return len(candidate) > len(word) and candidate.endswith(word[:1].upper() + word[1:])


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()


def _distance(one: str, other: str, limit: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between two words; `limit` if not fewer."""
    before_last: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        current = [row]
        for column, other_letter in enumerate(other, start=1):
            cost = min(last[column] + 1, current[column - 1] + 1, last[column - 1] + (letter != other_letter))
            swapped = row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == other_letter
            if swapped:
                cost = min(cost, before_last[column - 2] + 1)
            current.append(cost)
        if min(current) >= limit and min(last) >= limit:
            return limit
        before_last, last = last, current
    return min(last[-1], limit)
