"""What becomes of the mutants of small policies, as data beside this file."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.graph import Compiler, Layer
from koordpolicy.graph.mutation.score import Fate, Score, score
from koordpolicy.graph.testing import run_tests
from tests.unit.graph.policies_text import BUNDLE, document

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("score.yaml"))
USUAL = "target: {cel: node.capacity.cpu}"
MANY = 1_000


def _scored(policy: str, cases: str, most: int = MANY, allowed: int = MANY) -> Score:
    files = {
        "koordpolicy.yaml": BUNDLE,
        "policy.yaml": document("CPUSuppress", "default", indent(policy, "  ")),
        "other.yaml": document("CPUSuppress", "other", f"  {USUAL}"),
        "test.yaml": document("PolicyTest", "t", f"  cases:\n{indent(cases, '    ')}"),
    }
    own, compiler = Layer("own", files), Compiler()
    compilation = compiler.compile(own)
    assert compilation.graph is not None, [found.message for found in compilation.found]
    run = run_tests(compilation.graph, compilation.units, coverage=True)
    assert run.passed, [found.message for found in run.found]
    left: Iterator[bool] = iter([True] * allowed)
    return score(compiler, own, compilation, run, most, lambda: next(left, False))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_becomes_of_mutants(case: dict[str, Any]) -> None:
    scored = _scored(case["policy"], case["cases"])
    survivors = [
        f"{scored.fates[one]} {one.operator}: {one.before} -> {one.after}"
        for one in scored.survivors
        if one.file == "policy.yaml"
    ]
    assert survivors == case["survivors"]
    counts = {
        fate: sum(f is fate and m.file == "policy.yaml" for m, f in scored.fates.items()) for fate in Fate
    }
    assert {fate.value: count for fate, count in counts.items() if count} == case["counts"]


def test_fewer_are_a_fixed_part_of_all_and_come_by_place() -> None:
    policy, cases = CASES[0]["policy"], CASES[0]["cases"]
    every = _scored(policy, cases)
    assert len(every.fates) == every.all
    ids = [mutant.id for mutant in every.fates]
    some = [mutant.id for mutant in _scored(policy, cases, most=4).fates]
    assert some == [mutant.id for mutant in _scored(policy, cases, allowed=4).fates]
    assert some == [one for one in ids if one in some]
    assert len(some) == 4
