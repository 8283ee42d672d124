"""Places for the boxes of a picture: columns from left to right, few crossings, short arrows.

Boxes stand right before the first that reads them, those that nobody reads in the last column. An arrow over several columns gets a place in each of them, so that no box stands in its way.
Within a column, the order follows the middle of the neighbours, sweep by sweep, and the best order met is
kept; then places are moved as near to the neighbours as order and distance permit.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from koordpolicy.graph.drawing.picture import Arrow, Picture

SWEEPS = 24
_GAP = 18.0
_THIN_GAP = 8.0
_BETWEEN = 72.0
_BETWEEN_PARTS = 34.0


@dataclass(frozen=True, slots=True)
class Size:
    """What a box needs, in pixels."""

    width: float
    height: float


@dataclass(slots=True)
class Spot:
    """A box, or the way of an arrow through a column (`box` is then empty).

    `x` and `y` are its upper left corner, `edge` is where its column ends.
    """

    box: str
    width: float
    height: float
    column: int
    x: float = 0.0
    y: float = 0.0
    edge: float = 0.0
    before: "list[Spot]" = field(default_factory=list)
    behind: "list[Spot]" = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    @property
    def gap(self) -> float:
        return _GAP if self.box else _THIN_GAP


@dataclass(frozen=True, slots=True)
class Placed:
    """Spots of the boxes by id, the ways of arrows (in the picture's order), and the whole size."""

    boxes: Mapping[str, Spot]
    ways: tuple[tuple[Spot, ...], ...]
    width: float
    height: float


def place_boxes(picture: Picture, sizes: Mapping[str, Size]) -> Placed:
    """Place every box. The picture has no circles."""
    columns = _columns(picture)
    count = max(columns.values(), default=0) + 1
    spots = {
        box.id: Spot(box.id, sizes[box.id].width, sizes[box.id].height, columns[box.id])
        for box in picture.boxes
    }
    ways: dict[Arrow, tuple[Spot, ...]] = {}
    bands: list[list[list[Spot]]] = []
    for part in _parts(picture):
        layers: list[list[Spot]] = [[] for _ in range(count)]
        for box in part.boxes:
            layers[columns[box.id]].append(spots[box.id])
        for arrow in part.arrows:
            ways[arrow] = _way(spots[arrow.source], spots[arrow.target], layers)
        _order(layers)
        bands.append(layers)
    width = _set_x([[spot for layers in bands for spot in layers[column]] for column in range(count)])
    top = 0.0
    for layers in bands:
        top += _set_y(layers, top) + _BETWEEN_PARTS
    return Placed(
        spots, tuple(ways[arrow] for arrow in picture.arrows), width, max(0.0, top - _BETWEEN_PARTS)
    )


def _parts(picture: Picture) -> list[Picture]:
    """The parts of a picture that no arrow joins, in order of their first boxes."""
    group = {box.id: number for number, box in enumerate(picture.boxes)}
    members = {number: [id] for id, number in group.items()}
    for arrow in picture.arrows:
        one, other = sorted((group[arrow.source], group[arrow.target]))
        if one != other:
            moved = members.pop(other)
            members[one] += moved
            group.update(dict.fromkeys(moved, one))
    return [
        Picture(
            picture.title,
            tuple(box for box in picture.boxes if group[box.id] == number),
            tuple(arrow for arrow in picture.arrows if group[arrow.source] == number),
        )
        for number in members
    ]


def _columns(picture: Picture) -> dict[str, int]:
    """The column of each box: right before the first of its readers, the last readers in the last column."""
    readers: dict[str, list[str]] = defaultdict(list)
    for arrow in picture.arrows:
        readers[arrow.source].append(arrow.target)
    depths: dict[str, int] = {}
    waiting = [box.id for box in picture.boxes]
    while waiting:
        # Without circles every round settles at least one box.
        left = []
        for id in waiting:
            if all(reader in depths for reader in readers[id]):
                depths[id] = max((depths[reader] + 1 for reader in readers[id]), default=0)
            else:
                left.append(id)
        if len(left) == len(waiting):
            raise ValueError("a picture with a circle has no columns")
        waiting = left
    deepest = max(depths.values(), default=0)
    return {id: deepest - depth for id, depth in depths.items()}


def _way(source: Spot, target: Spot, layers: list[list[Spot]]) -> tuple[Spot, ...]:
    """The spots of an arrow: its ends, and one in each column between."""
    between = [Spot("", 0.0, 2.0, column) for column in range(source.column + 1, target.column)]
    for spot in between:
        layers[spot.column].append(spot)
    way = (source, *between, target)
    for left, right in pairwise(way):
        left.behind.append(right)
        right.before.append(left)
    return way


def _order(layers: list[list[Spot]]) -> None:
    """Order the spots of each column so that few arrows cross."""
    best = [list(layer) for layer in layers]
    fewest = _crossings(layers)
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for layer in layers if forward else reversed(layers):
            _sort(layer, layers, forward=forward)
        crossings = _crossings(layers)
        if crossings < fewest:
            fewest, best = crossings, [list(layer) for layer in layers]
        if not fewest:
            break
    for layer, order in zip(layers, best, strict=True):
        layer[:] = order


def _sort(layer: list[Spot], layers: list[list[Spot]], *, forward: bool) -> None:
    """By the middle of the neighbours on one side; those without any stay where they are."""
    if not layer:
        return
    column = layer[0].column + (-1 if forward else 1)
    if not 0 <= column < len(layers):
        return
    ranks = {id(spot): rank for rank, spot in enumerate(layers[column])}
    here = {id(spot): rank for rank, spot in enumerate(layer)}

    def wanted(spot: Spot) -> tuple[float, int]:
        neighbours = spot.before if forward else spot.behind
        own = here[id(spot)]
        return (fmean(ranks[id(one)] for one in neighbours) if neighbours else float(own), own)

    layer.sort(key=wanted)


def _crossings(layers: list[list[Spot]]) -> int:
    total = 0
    for layer, following in pairwise(layers):
        ranks = {id(spot): rank for rank, spot in enumerate(following)}
        ends = [sorted(ranks[id(one)] for one in spot.behind) for spot in layer]
        total += _inversions([end for group in ends for end in group])
    return total


def _inversions(values: Sequence[int]) -> int:
    """Pairs in the wrong order, by a binary indexed tree over the values."""
    size = max(values, default=-1) + 1
    tree = [0] * (size + 1)
    count = 0
    for seen, value in enumerate(values):
        at, smaller = value + 1, 0
        while at > 0:
            smaller += tree[at]
            at -= at & -at
        count += seen - smaller
        at = value + 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return count


def _set_x(layers: list[list[Spot]]) -> float:
    x = 0.0
    for layer in layers:
        width = max((spot.width for spot in layer), default=0.0)
        for spot in layer:
            spot.x = x
            spot.edge = x + width
            if not spot.box:
                spot.width = width
        x += width + _BETWEEN
    return max(0.0, x - _BETWEEN)


def _set_y(layers: list[list[Spot]], begin: float) -> float:
    """Set the heights of one part, which begins at `begin`; gives how high it is."""
    for layer in layers:
        y = 0.0
        for spot in layer:
            spot.y = y
            y += spot.height + spot.gap
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            _settle(layer, [_wish(spot, forward=sweep % 2 == 0) for spot in layer])
    for layer in layers:
        _settle(layer, [_wish(spot, forward=None) for spot in layer])
    top = min((spot.y for layer in layers for spot in layer), default=0.0)
    for layer in layers:
        for spot in layer:
            spot.y += begin - top
    return max((spot.y + spot.height for layer in layers for spot in layer), default=begin) - begin


def _wish(spot: Spot, *, forward: bool | None) -> float:
    """Where a spot would best begin: level with its neighbours on one side, or on both."""
    neighbours = spot.before + spot.behind if forward is None else spot.before if forward else spot.behind
    return fmean(one.middle for one in neighbours) - spot.height / 2 if neighbours else spot.y


def _settle(layer: list[Spot], wishes: Sequence[float]) -> None:
    """Put each spot as near to its wish as order and distance permit: the least sum of squares.

    Spots that would overlap are pooled into blocks that stand at the mean of their wishes.
    """
    blocks: list[list[float]] = []  # sum of wishes (less the offset within the column), weight
    members: list[list[Spot]] = []
    offset = 0.0
    offsets = {}
    for spot, wish in zip(layer, wishes, strict=True):
        offsets[id(spot)] = offset
        weight = 1.0 if spot.box else 0.5
        blocks.append([(wish - offset) * weight, weight])
        members.append([spot])
        offset += spot.height + spot.gap
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, heavy = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += heavy
            spots = members.pop()
            members[-1] += spots
    for (total, weight), spots in zip(blocks, members, strict=True):
        for spot in spots:
            spot.y = total / weight + offsets[id(spot)]
