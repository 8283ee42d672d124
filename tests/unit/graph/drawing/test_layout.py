"""Where boxes are placed: columns, distances, few crossings, the same every time."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.graph.drawing import Arrow, Picture, PictureBox, Role
from koordpolicy.graph.drawing.layout import Placed, Size, place_boxes


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Boxes with arrows from earlier to later ones."""
    count = draw(st.integers(1, 14))
    ends = [(source, target) for target in range(count) for source in range(target)]
    chosen = draw(st.lists(st.sampled_from(ends), unique=True, max_size=30)) if ends else []
    boxes = tuple(PictureBox(str(at), Role.RULE, str(at)) for at in range(count))
    return Picture("p", boxes, tuple(Arrow(str(source), str(target)) for source, target in chosen))


def placed(picture: Picture, seed: int = 0) -> Placed:
    rng = random.Random(seed)
    return place_boxes(
        picture, {box.id: Size(rng.uniform(20, 200), rng.uniform(15, 90)) for box in picture.boxes}
    )


@given(pictures(), st.integers(0, 5))
def test_arrows_lead_to_the_right_and_boxes_do_not_overlap(picture: Picture, seed: int) -> None:
    result = placed(picture, seed)
    for arrow in picture.arrows:
        source, target = result.boxes[arrow.source], result.boxes[arrow.target]
        assert source.column < target.column
        assert source.x + source.width < target.x
    spots = list(result.boxes.values())
    for at, one in enumerate(spots):
        for other in spots[at + 1 :]:
            if one.column == other.column:
                assert one.y + one.height <= other.y + 0.001 or other.y + other.height <= one.y + 0.001


@given(pictures())
def test_everything_lies_within_the_picture(picture: Picture) -> None:
    result = placed(picture)
    for spot in result.boxes.values():
        assert spot.x >= 0
        assert spot.y >= -0.001
        assert spot.x + spot.width <= result.width + 0.001
        assert spot.y + spot.height <= result.height + 0.001


@given(pictures())
def test_ways_of_arrows_pass_beside_boxes(picture: Picture) -> None:
    result = placed(picture)
    for way in result.ways:
        for spot in way[1:-1]:
            for box in result.boxes.values():
                if box.column == spot.column:
                    assert not box.y < spot.middle < box.y + box.height


@given(pictures())
def test_the_same_picture_is_placed_the_same(picture: Picture) -> None:
    first, second = placed(picture), placed(picture)
    assert {id: (spot.x, spot.y) for id, spot in first.boxes.items()} == {
        id: (spot.x, spot.y) for id, spot in second.boxes.items()
    }


def picture(*arrows: str) -> Picture:
    names = dict.fromkeys(name for arrow in arrows for name in arrow.split(">"))
    boxes = tuple(PictureBox(name, Role.RULE, name) for name in names)
    return Picture("p", boxes, tuple(Arrow(*arrow.split(">")) for arrow in arrows))


def order(result: Placed, column: int) -> str:
    spots = sorted((spot.y, id) for id, spot in result.boxes.items() if spot.column == column)
    return "".join(id for _, id in spots)


def test_arrows_are_untangled() -> None:
    result = placed(picture("a>z", "b>y", "c>x", "x>1", "y>2", "z>3"))
    left, middle, right = (order(result, column) for column in range(3))
    assert (
        [left.index(one) for one in "abc"]
        == [middle.index(one) for one in "zyx"]
        == [right.index(one) for one in "321"]
    )


def test_sources_stand_beside_their_first_reader_and_sinks_in_the_last_column() -> None:
    result = placed(picture("a>b", "b>c", "late>c", "alone>end"))
    assert {id: spot.column for id, spot in result.boxes.items()} == {
        "a": 0,
        "b": 1,
        "late": 1,
        "c": 2,
        "alone": 1,
        "end": 2,
    }


def test_parts_that_nothing_joins_stand_below_each_other() -> None:
    result = placed(picture("a>b", "x>y", "c>b"))
    first = max(result.boxes[id].y + result.boxes[id].height for id in "abc")
    assert min(result.boxes[id].y for id in "xy") > first


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="circle"):
        placed(picture("a>b", "b>a"))


def test_nothing_at_all() -> None:
    result = place_boxes(Picture("p", (), ()), {})
    assert (result.width, result.height) == (0.0, 0.0)
