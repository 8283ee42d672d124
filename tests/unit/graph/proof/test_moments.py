"""Moments that expressions tell apart: one for each way in which what they ask of the clock turns out."""

import pytest

from koordpolicy.graph.proof.moments import MOST_MOMENTS, moments_of
from koordpolicy.graph.proof.situations import USUAL_MOMENT
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.cel.values_time import format_timestamp, parse_timestamp
from tests.unit.graph.diff.test_compare import graph

RULE = "kind: CPUSuppress\nspec: {minimum: {cel: \"$ ? cpu('4') : cpu('2')\"}}"
CASES = [
    ("now.getMonth() == 11 && now.getDate() == 25", "2026-12-25T00:00:00Z"),
    ("now.getHours('Europe/Berlin') >= 22", "2026-01-01T21:00:00Z"),
    ("now.getHours('Europe/Berlin') != now.getHours('Africa/Lagos')", "2026-03-30T00:00:00Z"),
    ("(now.getHours('Europe/Berlin') < 6) != (now.getHours('Europe/Paris') < 6)", "1979-09-05T04:00:00Z"),
    ("now.getHours() * 60 + now.getMinutes() >= 1350", "2026-01-01T22:30:00Z"),
    ("now.getDayOfWeek() == 5 && now.getDate() == 13", "2026-02-13T00:00:00Z"),
    ("now.getMonth() == 1 && now.getDate() == 29", "2028-02-29T00:00:00Z"),
    ("now.getFullYear() == 2040", "2040-01-01T00:00:00Z"),
    ("now >= timestamp('2031-05-06T07:00:00Z') && now.getHours() < 3", "2031-05-07T00:00:00Z"),
]


def _moments(condition: str) -> list[str]:
    expression = graph({"a": RULE.replace("$", condition)}).expression("CPUSuppress.minimum")
    found = moments_of([expression], USUAL_MOMENT)
    assert len(found) == len(set(found)) <= MOST_MOMENTS
    return [format_timestamp(Timestamp(ns)) for ns in found]


@pytest.mark.parametrize(("condition", "moment"), CASES)
def test_moments_that_a_condition_names(condition: str, moment: str) -> None:
    """The first one on which it holds is among them."""
    asked = graph({"a": RULE.replace("$", condition)})
    program = asked.program("CPUSuppress.minimum")
    roots = asked.decision("CPUSuppress.minimum").roots
    found = [
        text
        for text in _moments(condition)
        if program.call(*(parse_timestamp(text) if root == "now" else {} for root in roots)) == 4_000
    ]
    assert moment in found or found[0][:10] == moment[:10]


def test_no_moments_where_no_clock_is_read() -> None:
    """Nor where it is only held against other facts."""
    assert _moments("node.capacity.cpu > cpu('4')") == []
    assert _moments("now - node.metric.updatedAt > duration('60s')") == []
