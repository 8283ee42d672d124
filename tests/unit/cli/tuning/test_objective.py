"""What is wanted of a simulation: numbers of its report, typed, with slips told where they are."""

from typing import Any

import pytest

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.tuning.measures import REPORT
from koordpolicy.cli.tuning.objective import Objective


def report(**values: float) -> dict[str, Any]:
    """A report whose numbers are 0 but for those said, with `__` for dots."""
    told: dict[str, Any] = {}
    for fact in REPORT.facts:
        inner = told
        *groups, last = fact.path.split(".")
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = values.get(fact.path.replace(".", "__"), 0)
    return told


def test_an_expression_is_asked_of_the_report() -> None:
    objective = Objective("report.batch.coreHours - 2.0 * report.pods.pending", (), maximise=True)
    assert objective.value(report(batch__coreHours=10.5, pods__pending=3)).objective == 4.5


def test_constraints_that_do_not_hold_are_told() -> None:
    late, full = "report.services.violationShare < 0.01", "report.utilisation.cpuUsed.max <= 1.0"
    objective = Objective("report.batch.coreHours", (late, full), maximise=True)
    assert objective.value(report(services__violationShare=0.02)).broken == (late,)
    assert objective.value(report(services__violationShare=0.005)).broken == ()


def test_better_is_what_was_asked_for() -> None:
    assert Objective("1.0", (), maximise=True).better(2, 1)
    assert not Objective("1.0", (), maximise=False).better(2, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("report.batch.corehours", "coreHours"),
        ("report.batsh.coreHours", "batch"),
        ("report.batch.coreHours +", "column"),
        ("report.batch.coreHours > 1.0", "double"),
        ("raport.pods.pending", "report"),
    ],
)
def test_a_slip_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(CannotRunError) as caught:
        Objective(text, (), maximise=False)
    message = str(caught.value)
    assert message.startswith("--minimise, column ")
    assert said in message
    assert f"\n  {text}\n" in message


def test_a_constraint_is_a_condition() -> None:
    with pytest.raises(CannotRunError, match="--subject-to, column 1"):
        Objective("report.batch.coreHours", ("report.pods.pending",), maximise=True)


def test_no_number_is_no_objective() -> None:
    objective = Objective("report.batch.coreHours / report.pods.total", (), maximise=True)
    with pytest.raises(CannotRunError):
        objective.value(report())
