"""Golden update: what is written into tests, and what is left as it stands."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.testing import Results, run_tests, updated
from tests.unit.graph.policies_text import HEAD
from tests.unit.graph.testing.bundle import bundled

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("updates.yaml"))


def ran(test: str) -> tuple[Results, dict[str, str]]:
    compilation = bundled(test)
    assert isinstance(compilation.graph, RuleGraph), list(compilation.found)
    return run_tests(compilation.graph, compilation.units), compilation.sources


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_only_expected_values_change(case: dict[str, Any]) -> None:
    run, sources = ran(case["before"])
    head = HEAD.format(kind="PolicyTest", name="t")
    texts = updated(run.cases, sources)
    assert list(texts) == ["test.yaml"]
    shown = "".join(
        line.removeprefix("  ") for line in texts["test.yaml"].removeprefix(head).splitlines(keepends=True)
    )
    assert shown == case["after"]
    again, _ = ran(case["after"])
    assert again.passed
    assert not len(again.found)


def test_what_passes_is_not_written() -> None:
    run, sources = ran("cases: [{name: c, expect: {CPUSuppress.mechanism: cpuset}}]")
    assert updated(run.cases, sources) == {}


def test_line_ends_of_another_system_stay() -> None:
    run, sources = ran(
        "cases:\n  - name: c\n    expect:\n      CPUSuppress.minimumCPUs: 5\n      CPUSuppress.mechanism: x"
    )
    sources = {file: text.replace("\n", "\r\n") for file, text in sources.items()}
    text = updated(run.cases, sources)["test.yaml"]
    assert "      CPUSuppress.minimumCPUs: 2\r\n" in text
    assert text.count("\r\n") == text.count("\n")
