"""PolicyTests as data: what they are given, what they expect, and what comes of them."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.diagnostics import Diagnostic
from koordpolicy.graph.testing import run_tests, with_tests
from tests.unit.graph.policies_text import compiled, document
from tests.unit.graph.testing.bundle import LINES_BEFORE, POOL, SUPPRESS, bundled

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("cases.yaml"))


def shown(found: Diagnostic) -> str:
    """A finding on one line; the advice of a failed expectation and lists of facts are left out."""
    plain = not found.help or found.code == "KP501" or found.help.startswith("below it")
    line, column = found.span.start.line - LINES_BEFORE, found.span.start.column - 2
    return f"{found.code} {line}:{column} {found.message}" + ("" if plain else f" | {found.help}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_cases_come_out_as_they_should(case: dict[str, Any]) -> None:
    compilation = bundled(case["test"])
    assert compilation.graph is not None, list(compilation.found)
    run = run_tests(compilation.graph, compilation.units)
    findings = [shown(found) for found in run.found]
    passed = ["passed"] * sum(one.passed for one in run.cases)
    assert sorted(passed + findings) == sorted(case["outcome"])


def test_a_failure_names_the_rules_and_facts_behind_it() -> None:
    compilation = bundled(
        "cases:\n  - {name: c, given: {node: {capacity: {cpu: 8}, labels: {pool: b}}}, expect: {CPUSuppress.target: 3}}"
    )
    assert compilation.graph is not None
    (found,) = run_tests(compilation.graph, compilation.units).found
    notes = [(note.message, note.span and f"{note.span.file}:{note.span.start.line}") for note in found.notes]
    assert notes == [
        ("in the case `c`", None),
        ("`CPUSuppress/default` decided", "0.yaml:10"),
        ("with `CPUSuppress.parameters.share` from here", "1.yaml:6"),
        ("facts: node.capacity.cpu = 8, node.labels = {pool: b}", None),
    ]


def test_only_chosen_cases_run_and_coverage_is_not_judged_then() -> None:
    compilation = bundled(
        "cases:\n  - {name: one, expect: {CPUSuppress.mechanism: cpuset}}\n  - {name: two, expect: {CPUSuppress.mechanism: x}}",
        "  tests: {minimumCoverage: 100}\n",
    )
    assert compilation.graph is not None
    run = run_tests(compilation.graph, compilation.units, lambda suite, case: (suite, case) == ("t", "one"))
    assert [case.name for case in run.cases] == ["one"]
    assert run.passed
    assert not len(run.found)
    (found,) = [one for one in run_tests(compilation.graph, compilation.units).found if one.code == "KP504"]
    assert found.message == "tests take 0 of 20 branches, 0 %, less than 100 %"


def test_tests_of_a_pack_are_not_run_with_a_bundle_above_it() -> None:
    failing = document("PolicyTest", "t", "  cases: [{name: c, expect: {CPUSuppress.mechanism: cfsQuota}}]\n")
    compilation = compiled(POOL, pack=f"{SUPPRESS}---\n{failing}")
    assert compilation.graph is not None
    assert run_tests(compilation.graph, compilation.units).cases == ()
    assert with_tests(compilation).graph is not None


@pytest.mark.parametrize(("required", "kept"), [("true", False), ("false", True)])
def test_a_failing_test_keeps_a_revision_back_where_the_bundle_says_so(required: str, kept: bool) -> None:
    test = "cases: [{name: c, expect: {CPUSuppress.mechanism: cfsQuota}}]"
    done = with_tests(bundled(test, f"  tests: {{required: {required}}}\n"))
    assert (done.graph is not None) is kept
    assert [found.code for found in done.found] == ([] if kept else ["KP501"])
