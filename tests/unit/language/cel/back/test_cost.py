"""Estimates of cost."""

import pytest

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.cost import Bounds, estimate
from koordpolicy.language.cel.types import INT
from tests.unit.language.cel.back.expressions import typed

BOUNDS = Bounds(text=100, elements=10, entries=20, facts={"node.pods": 200})


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("1", 0, 0),
        ("i", 1, 1),
        ("i + j", 4, 4),
        ("node.capacity.cpu", 2, 2),
        ("b && i > 1", 3, 6),
        ("b ? i : i + j", 3, 6),
        ("s + s", 4, 24),
        ("s == 'abcdefghijkl'", 3, 3),
        ("s.contains('abcdefghijkl')", 23, 26),
        ("s.matches('abcdefgh')", 291, 561),
        ("i in li", 14, 24),
        ("[i, j]", 8, 8),
        ("{'a': i}", 17, 17),
        ("li.sum()", 143, 143),
        ("li.all(v, v > 0)", 13, 63),
        ("li.map(v, v + 1)", 13, 63),
        ("[1, 2, 3].map(v, i)", 28, 28),
        ("li.exists(v, li.exists(w, v == w))", 13, 763),
        ("node.pods.exists(p, p.priority > 5)", 14, 1214),
        ("optional.of(i).optMap(v, v + v)", 9, 13),
    ],
)
def test_an_estimate_spans_the_least_and_the_most(text: str, least: int, most: int) -> None:
    found = estimate(typed(text), BOUNDS)
    assert (found.minimum, found.maximum) == (least, most)


def test_the_dearest_loop_is_named_with_its_bound() -> None:
    found = estimate(
        typed("li.all(v, v > 0) && node.pods.all(p, node.pods.all(q, p.priority <= q.priority))"), BOUNDS
    )
    dearest = found.loops[0]
    assert (dearest.name, dearest.elements) == ("node.pods", 200)
    assert dearest.total <= found.maximum
    assert [loop.name for loop in found.loops] == ["node.pods", "node.pods", ""]


def test_a_shared_node_costs_wherever_it_is_used() -> None:
    tree = typed("i")
    for _ in range(20):
        tree = ir.Call(INT, "_+_(int,int)", (tree, tree))
    assert estimate(tree).maximum >= 2**20


def test_costs_grow_with_the_bounds() -> None:
    tree = typed("node.pods.filter(p, p.labels.exists(k, k == s)).size() > 3")
    small, large = (estimate(tree, Bounds(elements=n, entries=n)).maximum for n in (10, 100))
    assert large > 50 * small
