"""What exceptions hide today, or bring another day, is told with the moment from which it holds."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.diff import DecisionChange, compare_from
from koordpolicy.graph.diff.words import pair_text
from koordpolicy.language.cel.values_time import format_timestamp, parse_timestamp
from tests.unit.graph.diff.test_compare import graph, lines

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("later.yaml"))
NOW = parse_timestamp("2026-11-23T12:00:00Z")
EXCEPTION = """kind: PolicyException
metadata: {name: $}
spec:
  owner: a@b.c
  reason: a sale
  expires: "2026-12-31"
  match: {nodes: {matchLabels: {pool: web}}}
  overrides: {CPUSuppress.parameters.threshold: 30%}
"""


def revision(case: dict[str, Any], value: str | None) -> RuleGraph:
    files = {} if value is None else {"a": case["text"].replace("$", value)}
    if case.get("masked"):
        files["mask"] = EXCEPTION.replace("$", "mask")
    return graph(files)


def shown(changes: Iterable[DecisionChange]) -> Iterator[str]:
    for change in changes:
        for edit in change.edits:
            assert edit.example is not None
            yield f"{change.decision} | {pair_text(edit.example.old, edit.example.new)}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_from_when(case: dict[str, Any]) -> None:
    old, new = (revision(case, value) for value in case["values"])
    difference = compare_from(old, new, NOW)
    rest = [line for line in lines(difference) if " | " not in line]
    assert [*shown(difference.decisions), *rest] == case["now"]
    found = {format_timestamp(one.moment): list(shown(one.decisions)) for one in difference.later}
    assert found == {str(moment): told for moment, told in case["later"].items()}
    assert difference.differs == bool(case["now"] or case["later"])
    assert not compare_from(old, old, NOW).later


@pytest.mark.parametrize(("most", "opened"), [(1, True), (2, False)])
def test_what_lies_beyond_the_moments_that_are_looked_at_is_open(most: int, opened: bool) -> None:
    """Nothing is claimed of it; revisions that are one have nothing beyond."""
    masks = {
        name: EXCEPTION.replace("$", name).replace("2026-12-31", end).replace("web", name)
        for name, end in (("one", "2026-12-31"), ("two", "2027-06-30"))
    }
    rule = "kind: CPUSuppress\nspec: {match: {nodes: {matchLabels: {pool: two}}}, parameters: {threshold: $}}"
    old, new = (graph({"a": rule.replace("$", value), **masks}) for value in ("55%", "56%"))
    difference = compare_from(old, new, NOW, most=most)
    [later] = difference.later
    assert format_timestamp(later.moment) == "2027-07-01T00:00:00Z"
    assert bool(later.open) == opened
    assert bool(later.decisions) == difference.differs == (not opened)
    assert not difference.empty
    assert compare_from(old, old, NOW, most=most).empty
