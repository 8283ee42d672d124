"""The sections of a simulation's report as a page of HTML: all that a terminal has, readable on small screens and on paper."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from koordpolicy.cli.simulation import said
from koordpolicy.cli.simulation.html import page
from koordpolicy.cli.simulation.text import SECTIONS, render
from koordpolicy.cli.simulation.words import Page
from koordpolicy.simulator.fault_plan import read_faults
from koordpolicy.simulator.workload import Arrival, Wave
from tests.integration.console.browser import Page as Tab
from tests.integration.console.browser import browser
from tests.integration.console.driving import axe
from tests.integration.simulations import graph_with, job, pod, service, simulated, workload
from tests.integration.test_simulation_page import Seen


@dataclass(frozen=True, slots=True)
class Headed(Page):
    """A terminal that keeps the headings it is given."""

    headings: list[str] = field(default_factory=list)

    def heading(self, text: str, beside: str = "") -> str:
        self.headings.append(text)
        return Page.heading(self, text, beside)


POLICIES: Final = """\
apiVersion: koordpolicy.io/v1alpha1
kind: Descheduling
metadata: {name: koord-descheduler}
spec:
  strategies:
  - {name: LowNodeLoad, enabled: true, load: {high: {cpu: 45%}, low: {cpu: 25%}, anomaly: {rounds: 2}}}
---
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: held}
spec: {parameters: {threshold: 20%}}
---
apiVersion: koordpolicy.io/v1alpha1
kind: SchedulingProfile
metadata: {name: koord-scheduler}
spec:
  schedulerName: koord-scheduler
  scores:
  - {name: broken, weight: 1, value: {cel: "100 / node.labels[?'nope'].orValue('').size()"}}
---
apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: owner}
spec: {enforcement: warn, require: {cel: "'owner' in pod.annotations"}, reason: unowned, message: say who owns it}
---
apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: never}
spec: {require: {cel: "pod.name != 'never'"}, reason: never, message: no such pod}
"""
OTHERWISE: Final = {"CPU in use over time": "Over time"}
"""Headings of a terminal that pages have by another name: there are charts of more than CPU."""
PAGE_ALONE: Final = {"Free CPU at the end"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A report in which no section is missing."""
    faults = tmp_path_factory.mktemp("faults") / "faults.yaml"
    faults.write_text(
        "faults:\n- apiErrors: {at: 40m, for: 5m}\n- metricGap: {at: 41m, for: 5m, nodes: {count: 1}}\n"
        "- lateStart: {by: 2m, nodes: {count: 1}}\n"
    )
    arrivals = [
        *(service(f"s{at}", "2", 0.9) for at in range(3)),
        *(job(f"j{at}", "2") for at in range(3)),
        service("big", "64", 0.1),
        service("never", "1", 0.1),
        Arrival(
            0,
            {**(theirs := pod("theirs", "1")), "spec": {**theirs["spec"], "schedulerName": "theirs"}},
            None,
            Wave(0.1, 0.1),
        ),
    ]
    told = simulated(
        graph_with(*POLICIES.split("---\n")),
        workload(arrivals, minutes=150),
        agents=True,
        faults=read_faults(faults),
        explain=("j0", "big", "never"),
    )
    return {**told, "withoutDescheduling": None, "wallSeconds": 1.0}


def test_the_page_has_every_section_of_the_terminal(whole: dict[str, Any]) -> None:
    for section in SECTIONS:
        assert list(section(whole, Page())), f"the report of this test has nothing for {section.__name__}"
    assert whole["explained"]
    assert whole["untried"]
    terminal = Headed()
    render(whole, terminal)
    on_page = Seen(page(whole)).headings
    assert len(on_page) == len(set(on_page))
    assert {OTHERWISE.get(one, one) for one in terminal.headings} == set(on_page) - PAGE_ALONE


def test_the_page_says_of_agents_and_suppression_what_the_terminal_says(whole: dict[str, Any]) -> None:
    text = Seen(page(whole)).text
    rows = [
        *said.agents(whole["agents"]),
        *said.suppression(whole["suppression"]),
        *said.services(whole["services"]),
    ]
    assert len(rows) == 11
    for label, told in rows:
        assert f"{label}{told}" in text


def test_the_table_of_faults_has_the_numbers_of_the_charts(whole: dict[str, Any]) -> None:
    text = page(whole)
    rows = re.findall(r'<tr><td class="n">(\d)</td><td class="n">([\d:]+)</td>', text)
    assert rows == [("1", "00:00"), ("2", "00:40"), ("3", "00:41")]
    for drawn in re.findall(r"<svg.*?</svg>", text):
        assert re.findall(r"</title>([\d–]+)</text>", drawn) == ["1", "2–3"]
        assert drawn.count('class="mark red"') == 3
    assert text.count("fault, by number") == text.count("<svg")


LONG: Final = "x" * 300
PAPER: Final = {"A4": 794 - 2 * 45, "Letter": 816 - 2 * 45}
"""What is left of their width beside margins of 12 mm, in CSS pixels."""
CUT: Final = """[...document.querySelectorAll('main, table, td, th, p, h1, h2, figure, .legend, footer')]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 || one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.outerHTML.slice(0, 80))"""
OVERLAPPING: Final = """[...document.querySelectorAll('svg')].flatMap((svg) => {
    const boxes = [...svg.querySelectorAll('text')].map((one) => [one.textContent, one.getBoundingClientRect()]);
    return boxes.flatMap(([name, one], at) => boxes.slice(at + 1)
        .filter(([, other]) => one.left < other.right && other.left < one.right && one.top + 2 < other.bottom && other.top + 2 < one.bottom)
        .map(([other]) => [svg.getAttribute('aria-label'), name, other]));
})"""


@pytest.fixture(scope="module")
def crowded(whole: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of a report with long words, and with many faults near to each other."""
    [pending, *_], [broken, *_], [failed, *_] = (
        whole["pending"],
        whole["admission"]["broken"],
        whole["failedEvaluations"],
    )
    planned = [{**whole["faults"]["planned"][-1], "atSeconds": 60.0 * at * at} for at in range(12)]
    told = {
        **whole,
        "workload": {**whole["workload"], "title": LONG},
        "pending": [{**pending, "reason": LONG, "example": LONG}],
        "failedEvaluations": [{**failed, "place": LONG, "error": LONG}],
        "admission": {**whole["admission"], "broken": [{**broken, "name": LONG, "rule": LONG}]},
        "faults": {**whole["faults"], "planned": planned},
        "policies": {"digest": "0" * 64, "paths": [LONG]},
    }
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page(told), encoding="utf-8")
    return file.as_uri()


def looked_at(chromium: Path, look: Callable[[Tab], Any]) -> None:
    async def whole() -> None:
        async with browser(chromium) as tab:
            await look(tab)

    asyncio.run(whole())


def test_nothing_is_cut_on_paper(crowded: str, part: Callable[[str], Path]) -> None:
    async def look(tab: Tab) -> None:
        for paper, width in PAPER.items():
            await tab.size(width, 1000)
            await tab.tell("Emulation.setEmulatedMedia", media="print")
            await tab.go(crowded)
            assert await tab.ask(CUT) == [], paper
            assert await tab.ask(OVERLAPPING) == [], paper
            broken = "[...document.querySelectorAll('tr, figure, .tile')].map((one) => getComputedStyle(one).breakInside)"
            assert set(await tab.ask(broken)) == {"avoid"}

    looked_at(part("chromium"), look)


LOOKED_THROUGH = ((1280, False), (400, True))
"""The screens on which axe looks at a page with very much on it, which takes half a minute each."""


def test_the_page_is_readable_on_screens_wide_and_narrow_light_and_dark(
    crowded: str, part: Callable[[str], Path]
) -> None:
    async def look(tab: Tab) -> None:
        for width in (1280, 820, 400):
            for dark in (False, True):
                await tab.size(width, 800, dark=dark)
                await tab.go(crowded)
                assert await tab.ask("document.documentElement.scrollWidth <= innerWidth"), width
                assert await tab.ask(OVERLAPPING) == [], width
                if (width, dark) in LOOKED_THROUGH:
                    assert await axe(tab) == [], (width, dark)
        # What is wider than a small screen can be moved to the side by the keyboard.
        await tab.press("Tab")
        focused = "getComputedStyle(document.activeElement).outlineStyle + document.activeElement.className"
        assert await tab.ask(focused) == "solidwide"
        assert tab.problems == []

    looked_at(part("chromium"), look)
