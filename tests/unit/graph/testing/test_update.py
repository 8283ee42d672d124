"""Golden update: what is written into tests, and what is left as it stands."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.notation import as_before
from koordpolicy.graph.testing import Results, run_tests, updated
from koordpolicy.language.cel.types import CPU, MEMORY, Type
from koordpolicy.language.kinds import literal_value
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


@given(st.integers(-(10**18), 10**18), st.sampled_from(["Ti", "Gi", "Mi", "Ki", "T", "G", "M", "k", ""]))
def test_bytes_keep_their_unit_and_mean_the_same(value: int, unit: str) -> None:
    written = as_before(MEMORY, value, f"258.4{unit}")
    assert literal_value(MEMORY, written) == value


@pytest.mark.parametrize(
    ("type", "value", "before", "after"),
    [
        (MEMORY, 277454887321, "258.4Gi", "258.399999999Gi"),
        (MEMORY, 3 << 30, "1Gi", "3Gi"),
        (MEMORY, 3 << 29, "1Gi", "1.5Gi"),
        (MEMORY, 3 << 30, 5, "3Gi"),
        (MEMORY, -5, "1Gi", -5),
        (CPU, 10_800, "10500m", "10800m"),
    ],
)
def test_units_stay_as_they_were(type: Type, value: int, before: object, after: object) -> None:
    assert as_before(type, value, before) == after


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
