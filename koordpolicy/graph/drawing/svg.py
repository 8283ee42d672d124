"""A picture as SVG that needs no other program, readable on light and dark pages."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType

from koordpolicy.diagnostics.escaping import safe
from koordpolicy.diagnostics.render.display import width_of
from koordpolicy.graph.drawing.layout import Placed, Size, Spot, place_boxes
from koordpolicy.graph.drawing.picture import Picture, PictureBox, Role

_MARGIN = 20.0
_LETTER = 7.25
"""Width of a letter of the monospaced font at 12 px; the widest of the usual fonts, so that text fits."""
_LINE = 16.0
_PADDING = 9.0
_BAR = 4.0
_LEGEND = 30.0

_COLOURS: Mapping[Role, str] = MappingProxyType(
    {
        Role.FACT: "#2f81c4",
        Role.PARAMETER: "#b5781d",
        Role.VARIABLE: "#7c8590",
        Role.RULE: "#7a5cc2",
        Role.DECISION: "#2c9153",
        Role.COMPONENT: "#bb4a5e",
    }
)

_STYLE = """
text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #20262d; white-space: pre; }
.title { font-weight: 600; }
.line { fill: #57606a; }
.legend { fill: #7c8590; }
.box { fill: #f7f8fa; stroke: #c3c9d1; }
.arrow { fill: none; stroke: #8b949e; stroke-width: 1.2; }
.head { fill: #8b949e; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e9ef; }
  .line { fill: #a5afba; }
  .box { fill: #22272e; stroke: #4b545f; }
}
"""

_MARKER = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="head" d="M0,0.8 L8,4 L0,7.2 z"/></marker></defs>'
)


def write_svg(picture: Picture) -> str:
    """One `svg` element with its own styles; boxes have their full text as tooltips."""
    placed = place_picture(picture)
    legend = [role for role in Role if any(box.role is role for box in picture.boxes)]
    width = max(placed.width, _legend_width(legend)) + 2 * _MARGIN
    height = placed.height + 2 * _MARGIN + _LEGEND
    frame = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame} role="img">',
        f"<title>{_text(picture.title)}</title>",
        f"<style>{_STYLE}</style>",
        _MARKER,
        f'<g transform="translate({_n(_MARGIN)},{_n(_MARGIN)})">',
        *_legend(legend),
        "</g>",
        f'<g transform="translate({_n(_MARGIN)},{_n(_MARGIN + _LEGEND)})">',
        *_arrows(placed),
        *(line for box in picture.boxes for line in _box(box, placed.boxes[box.id])),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def place_picture(picture: Picture) -> Placed:
    """Places for boxes of the size that their text needs in a monospaced font of 12 px."""
    return place_boxes(picture, {box.id: _size(box) for box in picture.boxes})


def _size(box: PictureBox) -> Size:
    longest = max(width_of(line) for line in (box.title, *box.lines))
    width = longest * _LETTER + 2 * _PADDING + _BAR
    return Size(round(width, 1), (1 + len(box.lines)) * _LINE + 2 * _PADDING - 3)


def _box(box: PictureBox, spot: Spot) -> Iterator[str]:
    yield f'<g transform="translate({_n(spot.x)},{_n(spot.y)})">'
    if box.hint:
        yield f"<title>{_text(box.hint)}</title>"
    dashed = ' stroke-dasharray="4 3"' if box.role is Role.VARIABLE else ""
    yield f'<rect class="box" width="{_n(spot.width)}" height="{_n(spot.height)}" rx="5"{dashed}/>'
    yield (
        f'<rect width="{_n(_BAR)}" height="{_n(spot.height - 8)}" y="4" x="0" rx="2" fill="{_COLOURS[box.role]}"/>'
    )
    x = _BAR + _PADDING
    y = _PADDING + 10
    yield f'<text class="title" x="{_n(x)}" y="{_n(y)}">{_text(box.title)}</text>'
    for number, line in enumerate(box.lines, start=1):
        yield f'<text class="line" x="{_n(x)}" y="{_n(y + number * _LINE)}">{_text(line)}</text>'
    yield "</g>"


def _arrows(placed: Placed) -> Iterator[str]:
    leaving = _ports([way[0] for way in placed.ways], [way[1].middle for way in placed.ways])
    entering = _ports([way[-1] for way in placed.ways], [way[-2].middle for way in placed.ways])
    for way, start, end in zip(placed.ways, leaving, entering, strict=True):
        yield f'<path class="arrow" marker-end="url(#head)" d="{_path(way, start, end)}"/>'


def _ports(boxes: Sequence[Spot], others: Sequence[float]) -> list[float]:
    """Where arrows meet a box, from top to bottom in the order of their other ends."""
    by_box: dict[int, list[int]] = {}
    for at, spot in enumerate(boxes):
        by_box.setdefault(id(spot), []).append(at)
    heights = [0.0] * len(boxes)
    for ats in by_box.values():
        ats.sort(key=lambda at: (others[at], at))
        spot = boxes[ats[0]]
        room = min(spot.height - 14, 12.0 * (len(ats) - 1))
        for place, at in enumerate(ats):
            share = place / (len(ats) - 1) - 0.5 if len(ats) > 1 else 0.0
            heights[at] = spot.middle + share * room
    return heights


def _path(way: Sequence[Spot], start: float, end: float) -> str:
    """From the right side of the first spot to the left side of the last.

    Level as long as it is within a column, since other boxes stand above and below, and curved between columns.
    """
    x, y = way[0].edge, start
    parts = [f"M{_n(way[0].x + way[0].width)},{_n(y)}", f"H{_n(x)}"]
    for spot in way[1:]:
        last = spot is way[-1]
        to_x, to_y = spot.x - (1.5 if last else 0.0), end if last else spot.middle
        bend = (to_x - x) / 2
        parts.append(f"C{_n(x + bend)},{_n(y)} {_n(to_x - bend)},{_n(to_y)} {_n(to_x)},{_n(to_y)}")
        x, y = to_x, to_y
        if not last:
            x += spot.width
            parts.append(f"H{_n(x)}")
    return " ".join(parts)


def _legend(roles: Sequence[Role]) -> Iterator[str]:
    x = 0.0
    for role in roles:
        yield f'<rect x="{_n(x)}" y="0" width="10" height="10" rx="2" fill="{_COLOURS[role]}"/>'
        yield f'<text class="legend" x="{_n(x + 15)}" y="9.5">{role}</text>'
        x += 15 + len(role) * _LETTER + 18


def _legend_width(roles: Sequence[Role]) -> float:
    return sum(33 + len(role) * _LETTER for role in roles)


def _text(text: str) -> str:
    return escape(safe(text), quote=False)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
