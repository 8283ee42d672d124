"""Charts as SVG, drawn by their numbers alone: lines over time, with an axis, a legend and what stands under the pointer."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 14, 26
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
    marks: Sequence[tuple[float, str]] = (),
) -> str:
    """A figure; `times` are the names of the moments, as many as each line has values. `marks` are told at shares of the whole time. Empty where nothing is above 0.

    Numbers below 0 are drawn at it, those that are not finite are left out; the tips tell them all.
    """
    most = max((value for line in lines for value in line.values if math.isfinite(value)), default=0.0)
    if not times or most <= 0:
        return ""
    top = _top(most)
    parts = "".join(
        (
            *_grid(top, unit),
            *_clock(times),
            *_drawn(lines, top),
            *_pointed(times, lines, unit),
            *_marked(marks),
        )
    )
    legend = "".join(f'<span class="key {line.style}">{escape(line.name)}</span>' for line in lines)
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
_ABOVE: Final = 44
"""What title and legend take of a drawing."""
_KEY: Final = 150


def drawing(title: str, unit: str, times: Sequence[str], lines: Sequence[Line], made: str) -> str:
    """The same as a file of its own: on white, with title and legend, without what stands under a pointer; `made`, how it was made,
    is there for who reads its description.
    """
    most = max((value for line in lines for value in line.values if math.isfinite(value)), default=0.0)
    top = _top(most)
    inner = "".join((*_grid(top, unit), *_clock(times), *_drawn(lines, top)))
    keys = "".join(
        f'<g class="{line.style}"><path class="line" d="M{_LEFT + at * _KEY} 33h14"/>'
        f'<text x="{_LEFT + 20 + at * _KEY}" y="37">{escape(line.name)}</text></g>'
        for at, line in enumerate(lines)
    )
    height = HEIGHT + _ABOVE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"<desc>{escape(made)}</desc>"
        f'<style>{_LOOK}</style><rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        f'<text class="title" x="{_LEFT}" y="18">{escape(title)}</text>{keys}<g transform="translate(0 {_ABOVE})">{inner}</g></svg>\n'
    )


def shown(value: float, unit: str) -> str:
    """A number of an axis or a tip."""
    if not math.isfinite(value):
        return str(value)
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 1 else 2
    return f"{value:,.{digits}f}{' ' if unit and unit != '%' else ''}{unit}"


def _top(most: float) -> float:
    """The least round number that is no less than the most."""
    most = min(max(most, _LEAST_TOP), _MOST_TOP)
    step = 1.0
    while step * 10 <= most:
        step *= 10
    while step > most:
        step /= 10
    return next(one * step for one in _STEPS if one * step >= most * 0.999)


def _x(at: int, count: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (at / (count - 1) if count > 1 else 0.5)


def _y(value: float, top: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * min(max(value / top, 0.0), 1.0)


def _grid(top: float, unit: str) -> Iterator[str]:
    for number in range(_LINES + 1):
        value = top * number / _LINES
        y = _y(value, top)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(shown(value, unit))}</text>'


def _clock(times: Sequence[str]) -> Iterator[str]:
    every = -(-len(times) // _TIMES)
    for at in range(0, len(times), every):
        anchor = "start" if at == 0 else "end" if at == len(times) - 1 else "middle"
        yield f'<text x="{_x(at, len(times)):.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{escape(times[at])}</text>'


def _drawn(lines: Sequence[Line], top: float) -> Iterator[str]:
    floor = _y(0, top)
    for line in lines:
        count = len(line.values)
        drawn = [(_x(at, count), value) for at, value in enumerate(line.values) if math.isfinite(value)]
        if not drawn:
            continue
        points = [f"{x:.1f} {_y(value, top):.1f}" for x, value in drawn]
        if line.filled:
            area = f"M{drawn[0][0]:.1f} {floor:.1f}L{'L'.join(points)}L{drawn[-1][0]:.1f} {floor:.1f}Z"
            yield f'<path class="area {line.style}" d="{area}"/>'
        yield f'<path class="line {line.style}" d="M{"L".join(points)}"/>'


def _marked(marks: Sequence[tuple[float, str]]) -> Iterator[str]:
    for share, said in marks:
        x = _LEFT + (WIDTH - _LEFT - _RIGHT) * min(max(share, 0.0), 1.0)
        line = f"M{x:.1f} {_TOP}V{HEIGHT - _BOTTOM}"
        yield f'<path class="mark red" d="{line}"><title>{escape(said)}</title></path>'


def _pointed(times: Sequence[str], lines: Sequence[Line], unit: str) -> Iterator[str]:
    """A strip a moment, which tells its numbers under the pointer."""
    count = len(times)
    width = (WIDTH - _LEFT - _RIGHT) / count
    for at, time in enumerate(times):
        said = "\n".join([time, *(f"{line.name}: {shown(line.values[at], unit)}" for line in lines)])
        x = min(max(_x(at, count) - width / 2, _LEFT), WIDTH - _RIGHT - width)
        yield (
            f'<rect class="tip" x="{x:.1f}" y="{_TOP}" width="{width:.1f}" height="{HEIGHT - _TOP - _BOTTOM}">'
            f"<title>{escape(said)}</title></rect>"
        )
