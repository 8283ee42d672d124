"""`koordpolicy simulate --against`: what differs for sure, and what does not."""

import io
import json
import math
import re
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy import __version__, resources
from koordpolicy.cli.main import main
from koordpolicy.cli.simulation.made import Made
from koordpolicy.cli.simulation.pairs import ComparedPolicies, Pairs
from koordpolicy.cli.simulation.whatif import found as data_of
from koordpolicy.cli.simulation.whatif import render, render_markdown
from koordpolicy.cli.simulation.words import Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.simulator.comparison import Compared, compare

EXAMPLE = resources.examples() / "01-colocated-day" / "policies"
LESS = """\
apiVersion: koordpolicy.io/v1alpha1
kind: Overcommit
metadata: {name: less}
spec:
  resource: batch
  parameters:
    cpuReclaim: {value: 30%}
"""
numbers = st.floats(0, 1e6, allow_nan=False)


def told(scheduled: float) -> dict[str, Any]:
    """A report in which one number says something."""
    return {
        "workload": {"nodes": 2, "seconds": 3600.0, "intervalSeconds": 120.0},
        "policies": {"digest": "d"},
        "utilisation": {name: {"mean": 0.5} for name in ("cpuUsed", "cpuRequested", "memoryUsed")},
        "batch": {"coreHours": 1.0},
        "suppression": {"withheldShare": 0.0},
        "services": {"shortOfNodeTime": 0.0, "violationShare": 0.0, "tailSeconds": 0.0},
        "pods": {"scheduled": scheduled, "finished": 0, "pending": 0, "refused": 0},
        "scheduling": {"preempted": 0, "waitSeconds": {"mean": 0.0, "p95": 0.0}},
        "fragmentation": {"stranded": 0.0},
        "agents": None,
        "balance": {"deviation": 0.0, "highestNode": 0.0, "lowestNode": 0.0, "overloadedNodes": None},
        "descheduling": None,
        "faults": None,
        "overcommit": {},
    }


def pairs(
    before: list[dict[str, Any]], after: list[dict[str, Any]], old: str = "old", new: str = "new"
) -> Pairs:
    made = Made(("simulate",), tuple(range(1, len(before) + 1)))
    return Pairs(
        (ComparedPolicies(old, "d" * 64, "c" * 40), ComparedPolicies(new, "e" * 64)), before, after, made
    )


def of_pods(before: list[float], after: list[float]) -> Compared:
    found = compare([told(one) for one in before], [told(one) for one in after])
    return next(one for one in found if one.measure.name == "pods scheduled")


@given(st.lists(st.tuples(numbers, numbers), min_size=4, max_size=4))
def test_intervals_are_those_of_students_t_over_pairs(pairs: list[tuple[float, float]]) -> None:
    found = of_pods([one for one, _ in pairs], [other for _, other in pairs])
    differences = [other - one for one, other in pairs]
    margin = 3.182 * stdev(differences) / math.sqrt(4)
    assert found.low is not None
    assert found.low == pytest.approx(mean(differences) - margin, abs=1e-3)
    assert found.high == pytest.approx(mean(differences) + margin, abs=1e-3)


def test_what_is_sure_and_no_trifle_matters() -> None:
    assert of_pods([100, 110, 90], [120, 131, 109]).matters
    assert of_pods([100, 110, 90], [120, 131, 109]).better
    assert not of_pods([100, 110, 90], [120, 85, 99]).matters  # not sure
    assert not of_pods([1000, 1000, 1000], [1001, 1001, 1001]).matters  # sure, and a trifle
    assert not of_pods([100, 110, 90], [100, 110, 90]).matters
    assert not of_pods([100], [200]).matters  # one seed tells nothing


def test_names_cannot_leave_their_place_in_markdown() -> None:
    hostile = "a|b`</code><img src=x>\n# x"
    text = render_markdown(pairs([told(1), told(2)], [told(5), told(6)], hostile))
    assert "<img" not in text
    assert "\n# x" not in text
    assert "| pods scheduled (pods) | 1.5 | 5.5 | +4 ± 0 (+266.7 %) | better |" in text


def test_shares_differ_by_points_and_all_else_by_percent() -> None:
    before, after = [told(100), told(100)], [told(110), told(110)]
    for one in after:
        one["utilisation"] = {**one["utilisation"], "cpuUsed": {"mean": 0.53125}}
        one["scheduling"] = {"preempted": 0, "waitSeconds": {"mean": 60.0, "p95": 0.0}}
    compared = pairs(before, after)
    markdown, text = render_markdown(compared), render(compared, Page(80))
    assert "| CPU in use (share) | 50.0 % | 53.1 % | +3.1 ± 0.0 points |  |" in markdown
    assert "| pods scheduled (pods) | 100 | 110 | +10 ± 0 (+10.0 %) | better |" in markdown
    assert re.search(r"CPU in use +50\.0 % → 53\.1 % +\+3\.1 ± 0\.0 points$", text, re.MULTILINE)
    assert re.search(r"pods scheduled +100 → 110 +\+10 ± 0 pods \(\+10\.0 %\)$", text, re.MULTILINE)
    assert max(map(len, text.splitlines())) <= 80
    relative = {one["name"]: one["relative"] for one in data_of(compared)["measures"]}
    assert relative["pods scheduled"] == pytest.approx(0.1)
    assert relative["wait for a node, mean"] is None  # there was none before
    for shown in (markdown, text):  # waits are told, and so is why they come in steps
        assert "changes every 2 min" in " ".join(shown.split())
    assert "changes every" not in render_markdown(pairs([told(1)], [told(2)]))


def test_what_a_comparison_does_not_try_is_said() -> None:
    def said(before: dict[str, Any], after: dict[str, Any]) -> str:
        compared = pairs([before], [after])
        markdown, text = render_markdown(compared), render(compared, Page(80))
        notes = [
            note
            for note in ("no pod was best-effort work, by either", "is simulated with --agents")
            if note in " ".join(text.split()) and note.lower() in " ".join(markdown.lower().split())
        ]
        return " and ".join(notes)

    nothing, ran = {**told(1), "batch": {"coreHours": 0.0}}, {**told(1), "agents": {"evictions": {}}}
    assert said(nothing, nothing) == "no pod was best-effort work, by either"
    assert said(nothing, told(1)) == "is simulated with --agents"
    assert said(ran, ran) == ""


def test_a_comparison_says_how_it_was_made() -> None:
    compared = pairs([told(1), told(2)], [told(5), told(6)])
    found = data_of(compared)
    assert found["made"] == {"koordpolicy": __version__, "command": "koordpolicy simulate", "seeds": [1, 2]}
    assert found["before"] == {"policies": "old", "digest": "d" * 64, "commit": "c" * 40}
    assert found["after"]["commit"] is None
    markdown, text = render_markdown(compared), " ".join(render(compared, Page(80)).split())
    assert "policies <code>dddddddddddd</code> → <code>eeeeeeeeeeee</code>" in markdown
    assert "Again by <code>koordpolicy simulate</code>" in markdown
    by = (
        f"made by koordpolicy {__version__} with seeds 1 to 2; policies dddddddddddd → eeeeeeeeeeee; again by"
    )
    assert f"{by} koordpolicy simulate" in text


def test_names_of_our_measures_are_no_code() -> None:
    before, after = ({**told(1), "balance": {**told(1)["balance"], "deviation": of}} for of in (0.1, 0.2))
    assert "| deviation of nodes' CPU in use (share) |" in render_markdown(pairs([before], [after]))


@given(st.text(st.sampled_from("ab./-|<>[]()`*_~\\&@:!#\"'$\n ") | st.characters(), max_size=30))
def test_names_of_resources_are_no_markup(name: str) -> None:
    hostile = f"x/cpu{name}"
    reports = [{**told(1), "overcommit": {hostile: {"offeredMean": of}}} for of in (1.0, 2.0)]
    row = next(line for line in render_markdown(pairs(reports, reports)).splitlines() if "offered" in line)
    assert len(re.findall(r"(?<!\\)\|", row)) == 6
    cell = row.split("|")[1].strip().removesuffix(" (cores)")
    if not re.fullmatch(r"[A-Za-z0-9 ,%'-]+", cell):
        assert re.fullmatch(r"<code>([^!-,:-@\[-`{-~]|&#\d+;)*</code>", cell), cell


@pytest.fixture(scope="module")
def less(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("less")
    (folder / "less.yaml").write_text(LESS, encoding="utf-8")
    (folder / "batch.yaml").write_text((EXAMPLE / "batch.yaml").read_text("utf-8"), encoding="utf-8")
    return str(folder)


def call(*flags: str) -> tuple[int, str]:
    out = io.StringIO()
    day = ("simulate", "--generate", "3:24", "--until", "30m", "--interval", "10m", "--seeds", "2")
    return main((*day, *flags), Terminal(out, io.StringIO())), out.getvalue()


def test_a_parameter_shows_in_what_it_decides(less: str) -> None:
    code, text = call("-p", less, "--against", str(EXAMPLE), "-o", "json")
    found = json.loads(text)
    measures = {one["name"]: one for one in found["measures"]}
    offered = measures["batch-cpu offered"]
    assert (code, found["seeds"], offered["matters"]) == (0, 2, True)
    assert offered["difference"] == pytest.approx(-0.3 * 3 * 96, rel=0.15)  # 30 % of 288 cores less
    assert not measures["CPU requested"]["matters"]
    _, shown = call("-p", less, "--against", str(EXAMPLE))
    assert "batch-cpu offered" in shown.partition("the same, or not sure")[0]
    assert [line for line in shown.splitlines() if len(line) > 80 and less not in line] == []


@pytest.mark.parametrize("more", [(), ("--beside-services",)])
def test_seeds_without_a_comparison_are_refused(more: tuple[str, ...]) -> None:
    err = io.StringIO()
    asked = ("simulate", "--generate", "3", "--seeds", "5", *more)
    assert main(asked, Terminal(io.StringIO(), err)) == 2
    assert "--against PATH" in err.getvalue()
    assert "--seed N" in err.getvalue()


def test_what_cannot_be_asked_together_says_so(less: str) -> None:
    assert call("-o", "markdown")[0] == 2
    assert call("--against", less, "--explain", "x")[0] == 2
    assert call("--against", str(Path(less) / "nowhere"))[0] == 2


@pytest.mark.parametrize("output", ["text", "markdown"])
def test_policies_are_not_simulated_against_themselves(output: str) -> None:
    out = io.StringIO()
    asked = ["simulate", "--generate", "3", "-o", output, "-p", str(EXAMPLE), "--against", str(EXAMPLE)]
    assert main(asked, Terminal(out, out)) == 0
    assert out.getvalue() == "Both are the same policies: nothing can differ, and nothing was simulated.\n"
