"""The numbers that an objective may name are all numbers that a report has, by their names there."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from koordpolicy.cli.tuning.measures import OFFERED, REPORT, measured
from koordpolicy.cli.tuning.objective import Objective
from koordpolicy.language.cel.types import DOUBLE
from koordpolicy.simulator.fault_plan import read_faults
from tests.integration.simulations import graph_with, job, node, service, simulated, workload
from tests.integration.test_simulated_descheduling import ON, given

OF_THE_QUESTION = ("workload", "interruptedAtSeconds", "policies", "explained", "untried", "series", "events")
"""Parts that say what was simulated, or what was told while it ran, rather than what came of it."""

IN_DETAIL = ("suppression.lowest", "suppression.worst")
"""Single nodes at single moments."""


def numbers(part: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, value in part.items():
        at = f"{path}.{name}".lstrip(".")
        if at in OF_THE_QUESTION or at in IN_DETAIL:
            continue
        if isinstance(value, Mapping):
            yield from numbers(value, at)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield at


def reports(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """One with agents, one with faults, one with a descheduler that moves pods."""
    arrivals = [service("web", "4", 0.3), job("crawl", "2", minutes=20)]
    pack, nodes = graph_with(), [node("a"), node("b")]
    yield simulated(pack, workload(arrivals, nodes), agents=True)
    file = tmp_path / "faults.yaml"
    file.write_text(
        "faults:\n- nodeLoss: {at: 10m, nodes: {count: 1}}\n- apiErrors: {at: 0s, for: 5m, code: 429}\n"
    )
    yield simulated(pack, workload(arrivals, nodes), faults=read_faults(file))
    yield simulated(ON, given())


def test_each_number_of_a_report_can_be_named(tmp_path: Path) -> None:
    maps = tuple(f"{fact.path}." for fact in REPORT.facts if fact.type != DOUBLE)
    single = {fact.path for fact in REPORT.facts if fact.type == DOUBLE}
    seen: set[str] = set()
    for report in reports(tmp_path):
        there = set(numbers(report))
        assert {path for path in there if path not in single and not path.startswith(maps)} == set()
        seen |= measured(report).keys()
        for offer in report["overcommit"].values():
            assert offer.keys() == {one.path for one in OFFERED}
    assert {fact.path for fact in REPORT.facts} == seen, "each of them is in one of the reports"


def test_sums_of_maps_stand_beside_them(tmp_path: Path) -> None:
    report = list(reports(tmp_path))[1]
    text = 'report.faults.refused - report.faults.refusedWrites["429"]'
    assert report["faults"]["refused"] > 0
    assert Objective(text, (), maximise=True).value(report).objective == 0
