"""The report of a simulation as a page of HTML, and what is left of one that was interrupted."""

import io
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from koordpolicy import __version__
from koordpolicy.cli.main import main
from koordpolicy.cli.simulation import fault_lines
from koordpolicy.cli.simulation.charts import HEIGHT, WIDTH, Line, chart, drawing
from koordpolicy.cli.simulation.html import page
from koordpolicy.cli.simulation.made import Made
from koordpolicy.cli.simulation.marks import Mark
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
    """The elements of a page, with their attributes, its text, and the headings of its sections."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.headings: list[str] = []
        self._in_heading = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._in_heading = tag == "h2"
        if self._in_heading:
            self.headings.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_heading = False

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._in_heading:
            self.headings[-1] += data


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
    for heading in ("Over time", "Scheduling", "Overcommit", "Why pods are pending"):
        assert heading in seen.text
    assert f"{told['overcommit']['kubernetes.io/batch-cpu']['offeredMean']:,.1f} cores" in seen.text
    assert told["batch"]["finishedPodsAnHour"] == 1.0
    assert told["batch"]["coreHours"] == pytest.approx(4 / 3, rel=0.3)
    assert told["services"]["shortOfNodeTime"] == 0
    # Two nodes of 16 cores, on one of which 8 are taken: the median request of 8 and 64, with 4 beside, is 8.
    assert told["fragmentation"] == {"freeCores": 24.0, "pieceCores": 8.0, "stranded": 0.0}


def test_a_chart_of_one_moment_shows_it_for_the_whole_time(told: dict[str, Any]) -> None:
    drawn = chart("x", "%", ["00:00"], [Line("one", "blue", [10.0], filled=True)])
    [(begin, end)] = re.findall(r'class="line blue" d="M([\d.]+) [^"]*L([\d.]+) [\d.]+"', drawn)
    assert float(end) - float(begin) > WIDTH / 2
    fault = {"kind": "apiErrors", "atSeconds": 1800, "forSeconds": None, "code": 500, "share": 1.0}
    only, *_ = told["series"]
    marked = fault_lines.marks({**told, "series": [only], "faults": {"planned": [fault]}})
    assert [one.share for one in marked] == [0.5]


@pytest.mark.parametrize(
    ("shares", "labels"),
    [
        ([0.5], ["1"]),
        ([0.0, 0.5, 1.0], ["1", "2", "3"]),
        ([0.2, 0.201, 0.9], ["1–2", "3"]),
        ([0.5] * 12, ["1–12"]),
        ([0.40, 0.45, 0.47], ["1", "2–3"]),
        ([0.40, 0.44, 0.455], ["1–3"]),
        ([at / 30 for at in range(31)], None),
        ([-1.0, 2.0], ["1", "2"]),
    ],
)  # fmt: skip
def test_numbers_of_faults_never_overlap(shares: list[float], labels: list[str] | None) -> None:
    marks = [Mark(share, at, f"fault {at}") for at, share in enumerate(shares, 1)]
    drawn = chart("x", "%", ["a", "b"], [Line("one", "blue", [1.0, 2.0])], marks)
    found = re.findall(r'<text class="number" x="([\d.]+)"[^>]*><title>[^<]*</title>([^<]*)<', drawn)
    assert labels is None or [one for _, one in found] == labels
    # Ten units a character is more than the boldest takes of them on paper.
    edges = [(float(x) - 5 * len(one), float(x) + 5 * len(one)) for x, one in found]
    assert all(0 <= begin < end <= WIDTH for begin, end in edges)
    assert all(one[1] < other[0] for one, other in pairwise(edges))
    numbers = [int(one) for _, label in found for one in label.split("–")]
    assert (numbers[0], numbers[-1]) == (1, len(shares))
    assert drawn.count('class="mark red"') == len(shares)


def test_a_drawing_of_its_own_says_below_what_its_marks_are() -> None:
    lines = [Line("one", "blue", [1.0, 2.0])]
    marks = [Mark(0.5, 1, "01:00 a <fault>"), Mark(0.51, 2, "01:01 " + "long " * 40)]
    drawn = drawing("x", "%", ["a", "b"], lines, "", marks)
    assert re.findall(r'class="number" x="\d+" y="\d+">(\d)<', drawn) == ["1", "2"]
    assert ">01:00 a &lt;fault&gt;</text>" in drawn
    heights = [int(one) for one in re.findall(r' y="(\d+)">', drawn)]
    [height] = re.findall(r'viewBox="0 0 \d+ (\d+)"', drawn)
    assert max(heights) < int(height)
    assert "number" not in drawing("x", "%", ["a", "b"], lines, "")


@pytest.mark.parametrize(
    "times", [["00:00"] * 30, ["day 3, 14:05"] * 30, ["day 3, 14:05"] * 2, ["day 300, 14:05"] * 9]
)
def test_times_below_a_chart_never_overlap(times: list[str]) -> None:
    drawn = chart("x", "%", times, [Line("one", "blue", [1.0] * len(times))])
    found = re.findall(rf'x="([\d.]+)" y="{HEIGHT - 6}" text-anchor="(\w+)">([^<]*)<', drawn)
    begin = {"start": 0.0, "middle": 0.5, "end": 1.0}
    starts = [float(x) - 8 * len(text) * begin[anchor] for x, anchor, text in found]
    ends = [start + 8 * len(text) for start, (_, _, text) in zip(starts, found, strict=True)]
    assert all(end < start for end, start in zip(ends, starts[1:], strict=False))


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (5, ["0", "1.25", "2.5", "3.75", "5"]), (2.4, ["0", "0.625", "1.25", "1.875", "2.5"]),
        (100, ["0", "25", "50", "75", "100"]), (5000, ["0", "1,250", "2,500", "3,750", "5,000"]),
    ],
)  # fmt: skip
def test_an_axis_shows_all_digits(most: float, expected: list[str]) -> None:
    drawn = chart("x", "", ["a", "b"], [Line("one", "blue", [most, most])])
    assert re.findall(r'text-anchor="end">([\d.,]+)<', drawn) == expected


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
    for times, first in (
        (["00:00", "01:00", "02:00"], "middle"),
        (["day 300, 00:00", "b", "c"], "start"),
    ):
        drawn = chart("x", "%", times, [Line("one", "blue", [1.0, 2.0, 3.0])])
        anchors = re.findall(r'text-anchor="(start|middle)">([^<%]*)<', drawn)
        assert anchors[0] == (first, times[0])
        assert anchors[-1][1] == times[-1]


def test_a_chart_shows_the_whole_time_and_numbers_in_the_middle_of_theirs() -> None:
    drawn = chart("x", "%", ["00:00", "00:30"], [Line("one", "blue", [1.0, 2.0])], [Mark(0.5, 1, "lost")])
    [path] = re.findall(r'class="line blue" d="M([^"]*)"', drawn)
    (left, _), (first, _), (second, _), (right, _) = [map(float, one.split()) for one in path.split("L")]
    [mark] = [float(one) for one in re.findall(r'class="mark red" d="M([\d.]+) ', drawn)]
    assert mark == pytest.approx((left + right) / 2)
    assert (first - left, second - mark) == pytest.approx(((right - left) / 4,) * 2)


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
