"""What speaks for a tuned choice, for a merge request: nothing in it is markup, and what may be chance says so."""

import re
from typing import Any

import pytest

from koordpolicy.cli.tuning.evidence import Confirmed, markdown
from koordpolicy.cli.tuning.objective import Objective
from koordpolicy.simulator.comparison import Measure, Unit, compared
from tests.integration.test_what_if import told as report

HOSTILE = "`</code><img src=x>|@all"
TEXT = f'"{HOSTILE}" == "|" ? 1.0 : report.batch.coreHours'


def shown(before: list[float], after: list[float], text: str = TEXT) -> str:
    objective = Objective(text, (), maximise=True)
    difference = compared(Measure(text, Unit.PODS, lambda _: 0.0, True), before, after)
    reports = [report(1) for _ in before]
    confirmed = Confirmed(range(4, 4 + len(before)), reports, reports, difference, {HOSTILE: 1})
    told: dict[str, Any] = {
        "values": [
            {"name": HOSTILE, "before": "10%", "after": "20%", "range": ["0%", "90%"], "importance": None}
        ],
        "objective": {"expression": text, "direction": "maximise"},
        "constraints": [HOSTILE],
        "trials": [{}],
        "search": {"seeds": [1, 2, 3]},
        "confirmation": {
            "seeds": list(confirmed.seeds),
            "before": difference.before,
            "after": difference.after,
            "broken": confirmed.broken,
            "sure": difference.sure,
            "holds": difference.difference > 0,
        },
    }
    return markdown(told, confirmed, objective, ("tune", HOSTILE))


def test_names_and_expressions_are_no_markup() -> None:
    text = shown([1, 2], [3, 4])
    outside = re.sub(r"<code>[^<]*</code>|`[^`]*`", "", text)
    for mark in ("<img", "@all", "`"):
        assert mark not in outside
    [row] = [line for line in text.splitlines() if "| 10% |" in line]
    assert len(re.findall(r"(?<!\\)\|", row)) == 6


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([10, 11], [12, 13], r"\+2 ± 0, sure\)\.\n"),
        ([10, 11], [12, 10], r"not sure\)\. Chance alone may have made that\.\n"),
        ([10], [12], r"\+2, not sure\)\. Chance alone may have made that\.\n"),
    ],
)
def test_what_may_be_chance_says_so(before: list[float], after: list[float], said: str) -> None:
    assert re.search(said, shown(before, after, "report.batch.coreHours - report.pods.pending"))


def test_shares_differ_by_points() -> None:
    text = shown([0.5, 0.5], [0.531, 0.531], "report.utilisation.cpuUsed.mean")
    assert "50 % → 53.1 % (+3.1 ± 0 points, sure)" in text
