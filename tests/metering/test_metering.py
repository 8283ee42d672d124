"""Hostile expressions end with an error in time, and nothing is charged less than it takes."""

import time
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.language.cel.cost import Bounds, estimate
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from tests.metering.generate import Generator
from tests.metering.measure import measure, measured, typed

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).parent / "hostile.yaml")
HANG = 20.0
"""Seconds that nothing takes unless its work is not bounded."""


def _text(case: dict[str, Any]) -> str:
    levels: int = case.get("bind", 0)
    binds = ["cel.bind(q0, [1, 1], "] if levels else []
    binds += [f"cel.bind(q{at}, [q{at - 1}, q{at - 1}], " for at in range(1, levels)]
    return "".join(binds) + str(case["cel"]) + ")" * levels


@pytest.mark.parametrize("case", CASES, ids=[case["cel"] for case in CASES])
def test_hostile_expressions_end_in_time(case: dict[str, Any]) -> None:
    began = time.perf_counter()
    found = measure(_text(case))
    assert found is not None
    assert found.ended == case["ends"]
    assert found.grown < 256 << 20
    assert time.perf_counter() - began < HANG


@pytest.mark.parametrize("case", CASES, ids=[case["cel"] for case in CASES])
def test_hostile_expressions_fold_and_are_estimated_in_time(case: dict[str, Any]) -> None:
    began = time.perf_counter()
    node = typed(_text(case))
    assert node is not None
    folded = fold(node)
    assert measured(case["cel"], folded, DEFAULT_BUDGET).ended in (case["ends"], "value")
    assert estimate(folded).maximum > 0
    assert time.perf_counter() - began < HANG


def test_an_estimate_covers_what_is_charged_within_its_bounds() -> None:
    bounds = Bounds(text=256 * 1024, elements=1_000, entries=300)
    draw = Generator(11)
    less = []
    for _ in range(300):
        text = draw.expression()
        node = typed(text)
        assert node is not None
        found = (
            measured(text, node, DEFAULT_BUDGET) if estimate(node, bounds).maximum < DEFAULT_BUDGET else None
        )
        if found is not None and found.ended == "value" and found.charged > estimate(node, bounds).maximum:
            less.append((text, found.charged, estimate(node, bounds).maximum))
    assert less == []
