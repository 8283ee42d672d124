"""The report of a simulation as a page of HTML, and what is left of one that was interrupted."""

import io
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from koordpolicy import __version__
from koordpolicy.cli.main import main
from koordpolicy.cli.simulation.charts import HEIGHT, WIDTH, Line, chart
from koordpolicy.cli.simulation.html import page
from koordpolicy.cli.simulation.made import Made
from koordpolicy.cli.simulation.text import render
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.simulator.journal import Journal
from koordpolicy.simulator.report import report
from koordpolicy.simulator.simulation import Simulation, SimulationSettings
from koordpolicy.simulator.workload import Arrival, Wave
from tests.integration.simulations import MINUTE, graph_with, job, node, pod, service, simulated, workload

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31m"


class Seen(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    arrivals = [service("s", "8", 0.3), job("j", "4", minutes=20), service("big", "64", 0.1)]
    found = simulated(graph_with(), replace(workload(arrivals), title=HOSTILE))
    found["pending"][0] |= {"reason": HOSTILE, "example": HOSTILE}
    found["policies"]["paths"] = [HOSTILE]
    return found


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing(told: dict[str, Any]) -> None:
    text = page(told)
    seen = Seen(text)
    assert {"svg", "figure", "table", "title"} <= set(seen.tags)
    assert not {"script", "img", "link", "iframe", "object"} & set(seen.tags)
    assert not {one for one in seen.attributes if one.startswith("on") or one in ("src", "href")}
    assert "url(" not in text
    assert "@import" not in text
    assert seen.text.count("<script>alert(1)</script>") >= 4  # as text: title, heading, reason and example
    assert "\x1b" not in text


def test_the_page_says_what_the_report_says(told: dict[str, Any]) -> None:
    seen = Seen(page(told))
    for heading in ("Over time", "Scheduling", "Overcommitted resources", "Why pods are pending"):
        assert heading in seen.text
    assert f"{told['overcommit']['kubernetes.io/batch-cpu']['offeredMean']:,.1f} cores" in seen.text
    assert told["batch"]["finishedPodsAnHour"] == 1.0
    assert told["batch"]["coreHours"] == pytest.approx(4 / 3, rel=0.3)
    assert told["services"]["shortOfNodeTime"] == 0
    # Two nodes of 16 cores, on one of which 8 are taken: the median request of 8 and 64, with 4 beside, is 8.
    assert told["fragmentation"] == {"freeCores": 24.0, "pieceCores": 8.0, "stranded": 0.0}


def test_waits_say_why_they_come_in_steps_and_what_was_placed_with_a_report() -> None:
    # While the service is at work nothing is left for the job; it is over at 12 min, and that is reported at 15.
    busy = Arrival(0, pod("busy", "10"), 12 * MINUTE, Wave(0.9, 0.9))
    found = simulated(graph_with(), workload([busy, job("j", "4", at=3)], [node("a")]))
    placed = found["scheduling"]
    assert (placed["placedAtOnce"], placed["placedWithReports"]) == (1, 1)
    assert placed["waitSeconds"]["max"] == 12 * 60
    told = "1 at once, 1 with a report of agents; waits come in steps"
    for shown in (render(found, Page()), page(found)):
        assert told in " ".join(shown.split())
        assert "changes every 5 min" in " ".join(shown.split())


def test_the_page_says_how_it_was_made(told: dict[str, Any]) -> None:
    text = page(told, Made(("simulate", HOSTILE), (7,)))
    assert not {"script", "img"} & set(Seen(text).tags)
    assert f"Made by koordpolicy {__version__} with seed 7. Again by <code>koordpolicy simulate" in text


def test_lines_stay_within_their_chart() -> None:
    values = [0.0, 3.7, 999.9, 12.0]
    drawn = chart("x", "%", ["a", "b", "c", "d"], [Line("one", "blue", values, filled=True)])
    paths = re.findall(r'class="(?:line|area) blue" d="([^"]*)"', drawn)
    assert len(paths) == 2
    for path in paths:
        points = [tuple(map(float, one.split())) for one in re.split("[MLZ]", path) if one]
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    assert chart("x", "%", ["a"], [Line("one", "blue", [0.0])]) == ""


def test_the_first_and_the_last_time_stand_within_their_chart() -> None:
    drawn = chart("x", "%", ["00:00", "01:00", "02:00"], [Line("one", "blue", [1.0, 2.0, 3.0])])
    anchors = dict(re.findall(r'text-anchor="(start|middle|end)">(0\d:00)<', drawn))
    assert anchors == {"start": "00:00", "middle": "01:00", "end": "02:00"}


@pytest.mark.parametrize(
    ("values", "empty"),
    [
        ([math.inf, 1.0], False), ([math.nan, 1.0], False), ([math.nan, -math.inf], True), ([-1.0, -2.0], True),
        ([-5.0, 2.0], False), ([5e-324, 0.0], False), ([1.7e308, 1e-300], False),
    ],
)  # fmt: skip
def test_numbers_that_no_axis_has_are_drawn_within_it_or_not_at_all(values: list[float], empty: bool) -> None:
    drawn = chart("x", "%", ["a", "b"], [Line("one", "blue", values, filled=True)])
    assert (drawn == "") == empty
    for path in re.findall(r' d="([^"]*)"', drawn):
        numbers = [float(one) for one in re.split("[MLHZ ]", path) if one]
        assert all(0 <= one <= WIDTH for one in numbers)
    for value in [] if empty else values:
        if not math.isfinite(value):
            assert f"one: {value}" in drawn


def test_an_interrupt_leaves_a_report_of_the_time_before() -> None:
    def stop(passed: int, whole: int, journal: Journal) -> None:
        if passed >= 20 * MINUTE:
            raise KeyboardInterrupt

    simulation = Simulation(
        graph_with(),
        workload([service("s", "8", 0.3), job("late", "2", at=40)]),
        SimulationSettings(5 * MINUTE),
        np.random.default_rng(1),
        stop,
    )
    simulation.run()
    found = report(simulation)
    assert found["interruptedAtSeconds"] == 1200
    assert (found["pods"]["scheduled"], found["pods"]["notArrived"]) == (1, 1)
    assert "interrupted at 00:20" in render(found, Page())
    assert "Interrupted at 00:20" in page(found)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    file = tmp_path / "day.html"
    flags = ("simulate", "--generate", "2:8", "--until", "10m", "--report")
    assert main((*flags, str(file)), Terminal(io.StringIO(), io.StringIO())) == 0
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "koordpolicy simulate --generate 2:8 --until 10m --report " in file.read_text(encoding="utf-8")
    said = io.StringIO()
    assert main((*flags, str(tmp_path / "no" / "x.html")), Terminal(io.StringIO(), said)) == 2
    assert "there is no folder" in said.getvalue()
