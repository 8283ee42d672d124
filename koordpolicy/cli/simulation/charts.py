"""Charts as SVG, drawn by their numbers alone: lines over time, with an axis, a legend and what stands under the pointer."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import Final

from koordpolicy.cli.simulation import marks as moments
from koordpolicy.cli.simulation.marks import Mark

WIDTH: Final = 520
HEIGHT: Final = 216
"""Of a chart in a page, two of which stand beside each other: near to what they take of a screen, so that text is as large as it says."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """A drawing and where the lines of its chart begin and end, in units of the drawing."""

    width: int
    height: int
    left: int
    top: int
    character: float
    """The most that one takes of a time below the axis."""

    @property
    def right(self) -> int:
        return self.width - 12

    @property
    def bottom(self) -> int:
        return self.height - 26


_IN_PAGE: Final = _Frame(WIDTH, HEIGHT, 58, 30, 9)
_ALONE: Final = _Frame(720, 220, 52, 14, 7)
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_LINES: Final = 4
_TIMES: Final = 8
_LEAST_TOP: Final = 1e-9
_MOST_TOP: Final = 1e300
"""Between these an axis can be divided; what is beyond is drawn at its end."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart; `style` is the name of its colour. `filled` down to the axis."""

    name: str
    style: str
    values: Sequence[float]
    filled: bool = False


def chart(
    title: str,
    unit: str,
    times: Sequence[str],
    lines: Sequence[Line],
    marks: Sequence[Mark] = (),
) -> str:
    """A figure; `times` are the beginnings of equal parts of the time, as many as each line has values. Empty where nothing is above 0.

    `marks` are drawn with their numbers; what these are stands elsewhere in the page.

    Numbers below 0 are drawn at it, those that are not finite are left out; the tips tell them all.
    """
    most = max((value for line in lines for value in line.values if math.isfinite(value)), default=0.0)
    if not times or most <= 0:
        return ""
    top = _top(most)
    parts = "".join(
        (
            *_grid(top, unit, _IN_PAGE),
            *_clock(times, _IN_PAGE),
            *_drawn(lines, top, _IN_PAGE),
            *_pointed(times, lines, unit, _IN_PAGE),
            *_marked(marks, _IN_PAGE),
        )
    )
    keys = [(line.name, line.style) for line in lines]
    if marks:
        keys.append(("fault, by number", "dashed red"))
    legend = "".join(f'<span class="key {style}">{escape(name)}</span>' for name, style in keys)
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{parts}</svg>'
        f'<div class="legend">{legend}</div></figure>'
    )


_COLOURS: Final = {
    "blue": "#2563c9",
    "green": "#18864b",
    "amber": "#b45f06",
    "red": "#c02b2b",
    "grey": "#7a8494",
}
_LOOK: Final = (
    "text{font:12px system-ui,sans-serif;fill:#5b6575}.title{font-weight:600;fill:#1c2330}.grid{stroke:#d9dee6;fill:none}"
    ".line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}.area{fill:currentColor;opacity:.15}"
    + "".join(f".{name}{{color:{colour}}}" for name, colour in _COLOURS.items())
)
_LOOK_OF_MARKS: Final = ".mark{fill:none;stroke:currentColor;stroke-width:1.5;stroke-dasharray:3 4}.number{font-weight:600;fill:#c02b2b}"
_ABOVE: Final = 44
"""What title and legend take of a drawing."""
_KEY: Final = 150
_MARKS_ABOVE: Final = 12
"""What the numbers of marks take above the lines."""
_NOTE: Final = 16
_NOTE_CHARACTERS: Final = 100


def drawing(
    title: str, unit: str, times: Sequence[str], lines: Sequence[Line], made: str, marks: Sequence[Mark] = ()
) -> str:
    """The same as a file of its own: on white, with title and legend, marks told below, without what stands under a pointer; `made`, how
    it was made, is there for who reads its description.
    """
    most = max((value for line in lines for value in line.values if math.isfinite(value)), default=0.0)
    top = _top(most)
    inner = "".join(
        (
            *_grid(top, unit, _ALONE),
            *_clock(times, _ALONE),
            *_drawn(lines, top, _ALONE),
            *_marked(marks, _ALONE),
        )
    )
    left = _ALONE.left
    keys = "".join(
        f'<g class="{line.style}"><path class="line" d="M{left + at * _KEY} 33h14"/>'
        f'<text x="{left + 20 + at * _KEY}" y="37">{escape(line.name)}</text></g>'
        for at, line in enumerate(lines)
    )
    above = _ABOVE + (_MARKS_ABOVE if marks else 0)
    below = above + _ALONE.height
    notes = list(_notes(marks))
    told = "".join(
        f'<text{kind} x="{x}" y="{below + _NOTE * line}">{escape(said)}</text>'
        for line, x, kind, said in notes
    )
    height = below + (_NOTE * notes[-1][0] + 10 if notes else 0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_ALONE.width} {height}" role="img" aria-label="{escape(title)}">'
        f"<desc>{escape(made)}</desc>"
        f'<style>{_LOOK}{_LOOK_OF_MARKS if marks else ""}</style><rect width="{_ALONE.width}" height="{height}" fill="#fff"/>'
        f'<text class="title" x="{left}" y="18">{escape(title)}</text>{keys}<g transform="translate(0 {above})">{inner}</g>{told}</svg>\n'
    )


def _notes(marks: Sequence[Mark]) -> Iterator[tuple[int, int, str, str]]:
    """What is written below a drawing of its marks, number and words apart: line, x, class, text."""
    line = 0
    for mark in marks:
        yield line + 1, _ALONE.left, ' class="number"', str(mark.number)
        for said in wrap(mark.said, _NOTE_CHARACTERS):
            line += 1
            yield line, _ALONE.left + 24, "", said


def shown(value: float, unit: str) -> str:
    """A number of a tip."""
    if not math.isfinite(value):
        return str(value)
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 1 else 2
    return f"{value:,.{digits}f}{_beside(unit)}"


def _axis(value: float, unit: str) -> str:
    """A number of the axis with all of its digits: quarters of round numbers have three at most."""
    return f"{value:,.0f}" + _beside(unit) if value >= 1000 else f"{value:g}" + _beside(unit)


def _beside(unit: str) -> str:
    return f" {unit}" if unit and unit != "%" else unit


def _top(most: float) -> float:
    """The least round number that is no less than the most."""
    most = min(max(most, _LEAST_TOP), _MOST_TOP)
    step = 1.0
    while step * 10 <= most:
        step *= 10
    while step > most:
        step /= 10
    return next(one * step for one in _STEPS if one * step >= most * 0.999)


def _x(at: float, count: int, frame: _Frame) -> float:
    """Where so many of `count` parts of the time are over."""
    return frame.left + (frame.right - frame.left) * at / count


def _y(value: float, top: float, frame: _Frame) -> float:
    return frame.bottom - (frame.bottom - frame.top) * min(max(value / top, 0.0), 1.0)


def _grid(top: float, unit: str, frame: _Frame) -> Iterator[str]:
    for number in range(_LINES + 1):
        value = top * number / _LINES
        y = _y(value, top, frame)
        yield f'<path class="grid" d="M{frame.left} {y:.1f}H{frame.right}"/>'
        yield f'<text x="{frame.left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(_axis(value, unit))}</text>'


def _clock(times: Sequence[str], frame: _Frame) -> Iterator[str]:
    """As many of the times as stand beside each other, each where its part begins."""
    longest = frame.character * max(map(len, times), default=0)
    outside = longest / 2 > frame.left  # the first one would be, in the middle below its moment
    room = longest * (1.5 if outside else 1) + 2 * frame.character
    fit = max(min(_TIMES, int((frame.right - frame.left) / room)), 1)
    every = -(-len(times) // fit)
    for at in range(0, len(times), every):
        anchor = "start" if at == 0 and outside else "middle"
        x = _x(at, len(times), frame)
        if at and x + longest / 2 > frame.width:
            break
        yield f'<text x="{x:.1f}" y="{frame.height - 6}" text-anchor="{anchor}">{escape(times[at])}</text>'


def _drawn(lines: Sequence[Line], top: float, frame: _Frame) -> Iterator[str]:
    floor = _y(0, top, frame)
    for line in lines:
        count = len(line.values)
        # A number is of a whole part of the time: it stands in the middle, and holds to the edges of the drawing.
        drawn = [
            (_x(at + 0.5, count, frame), value)
            for at, value in enumerate(line.values)
            if math.isfinite(value)
        ]
        if not drawn:
            continue
        if math.isfinite(line.values[0]):
            drawn.insert(0, (float(frame.left), line.values[0]))
        if math.isfinite(line.values[-1]):
            drawn.append((float(frame.right), line.values[-1]))
        points = [f"{x:.1f} {_y(value, top, frame):.1f}" for x, value in drawn]
        if line.filled:
            area = f"M{drawn[0][0]:.1f} {floor:.1f}L{'L'.join(points)}L{drawn[-1][0]:.1f} {floor:.1f}Z"
            yield f'<path class="area {line.style}" d="{area}"/>'
        yield f'<path class="line {line.style}" d="M{"L".join(points)}"/>'


def _marked(marks: Sequence[Mark], frame: _Frame) -> Iterator[str]:
    yield from moments.drawn(marks, frame.left, frame.right, frame.top, frame.bottom)


def _pointed(times: Sequence[str], lines: Sequence[Line], unit: str, frame: _Frame) -> Iterator[str]:
    """A strip a part of the time, which tells its numbers under the pointer."""
    count = len(times)
    width = (frame.right - frame.left) / count
    for at, time in enumerate(times):
        said = "\n".join([time, *(f"{line.name}: {shown(line.values[at], unit)}" for line in lines)])
        yield (
            f'<rect class="tip" x="{_x(at, count, frame):.1f}" y="{frame.top}" width="{width:.1f}" height="{frame.bottom - frame.top}">'
            f"<title>{escape(said)}</title></rect>"
        )
