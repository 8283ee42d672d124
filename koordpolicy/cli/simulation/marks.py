"""Marks of moments in charts: a line each, and above them their numbers, which never overlap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_CHARACTER: Final = 10.0
"""The most that one takes of a label in bold, in units of the drawing: small screens and paper have the largest print."""
_ABOVE: Final = 14.0
"""How far above the lines a label stands: above the highest number of the axis, too, which it may be beside."""
_GAP: Final = 6.0
_BESIDE: Final = 8.0
"""How far labels may stand out beside the first and the last moment, so that they stand above their lines."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment, as a share of the whole time; its number among all in the order of time; and what it is."""

    share: float
    number: int
    said: str


@dataclass(frozen=True, slots=True)
class _Label:
    """Marks so near to each other that they have one label, in the order of time, by the x of the first and the last."""

    marks: tuple[Mark, ...]
    first: float
    last: float

    @property
    def text(self) -> str:
        """`2`, or `2–4`."""
        first, last = self.marks[0].number, self.marks[-1].number
        return str(first) if first == last else f"{first}–{last}"

    def middle(self, left: float, right: float) -> float:
        """Where it stands, in the middle of its lines or as near as the drawing's edges allow."""
        half = self.width / 2
        return min(max((self.first + self.last) / 2, left - _BESIDE + half), right + _BESIDE - half)

    @property
    def width(self) -> float:
        return _CHARACTER * len(self.text)


def drawn(marks: Sequence[Mark], left: float, right: float, top: float, bottom: float) -> Iterator[str]:
    """Lines between `top` and `bottom` with their labels above, lines between `left` and `right`, in units of the drawing."""

    def x(mark: Mark) -> float:
        return left + (right - left) * min(max(mark.share, 0.0), 1.0)

    for one in marks:
        yield f'<path class="mark red" d="M{x(one):.1f} {top}V{bottom}"><title>{escape(one.said)}</title></path>'
    ordered = sorted(marks, key=lambda one: (one.share, one.number))
    for label in _apart([_Label((one,), x(one), x(one)) for one in ordered], left, right):
        said = "\n".join(one.said for one in label.marks)
        yield (
            f'<text class="number" x="{label.middle(left, right):.1f}" y="{top - _ABOVE:g}" text-anchor="middle">'
            f"<title>{escape(said)}</title>{label.text}</text>"
        )


def _apart(labels: Sequence[_Label], left: float, right: float) -> list[_Label]:
    """Those that would overlap made one. What is made so is wider, and may reach what stands before it."""
    found: list[_Label] = []
    for one in labels:
        found.append(one)
        while len(found) > 1 and _overlap(found[-2], found[-1], left, right):
            last, before = found.pop(), found.pop()
            found.append(_Label((*before.marks, *last.marks), before.first, last.last))
    return found


def _overlap(one: _Label, other: _Label, left: float, right: float) -> bool:
    reach = (one.width + other.width) / 2 + _GAP
    return other.middle(left, right) - one.middle(left, right) < reach
