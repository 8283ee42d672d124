"""What is wanted of a simulation: numbers of its report, typed, with slips told where they are."""

from typing import Any

import pytest

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.tuning.measures import REPORT
from koordpolicy.cli.tuning.objective import Objective
from koordpolicy.language.cel.types import DOUBLE


def report(**values: Any) -> dict[str, Any]:
    """A report whose numbers are 0 and whose maps are empty but for those said, with `__` for dots."""
    told: dict[str, Any] = {}
    for fact in REPORT.facts:
        inner = told
        *groups, last = fact.path.split(".")
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = values.get(fact.path.replace(".", "__"), 0 if fact.type == DOUBLE else {})
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
        ("report.agents.evictd", "did you mean `report.agents.evicted`?"),
        ("report.faults.lostpods", "did you mean `report.faults.lostPods`?"),
        ("report.services.violationShar", "did you mean `report.services.violationShare`?"),
        ('report.overcommit["x"].offeredmean', "offeredMean"),
        ("2 * report.agents.evicted", "write `2` as `2.0`"),
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


def test_what_counts_by_names_is_a_map() -> None:
    by_reason = report(
        agents__evictions={"BEMemoryEvict": 3}, overcommit={"kubernetes.io/batch-cpu": {"offeredMean": 7}}
    )
    text = (
        'report.agents.evictions["BEMemoryEvict"] + report.overcommit["kubernetes.io/batch-cpu"].offeredMean'
    )
    assert Objective(text, (), maximise=True).value(by_reason).objective == 10
    guarded = 'report.agents.evictions[?"BECPUEvict"].orValue(0.0)'
    assert Objective(guarded, (), maximise=True).value(by_reason).objective == 0
    with pytest.raises(CannotRunError, match="no such key: 'BECPUEvict'"):
        Objective('report.agents.evictions["BECPUEvict"]', (), maximise=True).value(by_reason)


def test_a_number_that_may_be_missing_is_guarded() -> None:
    text = "has(report.balance.overloadedNodes) ? report.balance.overloadedNodes : -1.0"
    objective = Objective(text, (), maximise=False)
    assert objective.value(report(balance__overloadedNodes=None)).objective == -1
    assert objective.value(report(balance__overloadedNodes=2)).objective == 2


@pytest.mark.parametrize(
    ("constraint", "part", "remedy"),
    [
        ("report.agents.evicted < 1.0", "agents", "add --agents"),
        ("report.faults.lostPods < 1.0", "faults", "--faults FILE"),
        ("report.descheduling.evicted < 9.0", "descheduling", "no policy lets"),
    ],
)
def test_a_part_that_will_not_be_there_is_told(constraint: str, part: str, remedy: str) -> None:
    objective = Objective("report.batch.coreHours", (constraint,), maximise=True)
    objective.demand({part})
    with pytest.raises(CannotRunError, match=remedy) as caught:
        objective.demand({"agents", "faults", "descheduling"} - {part})
    assert constraint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("report.batch.coreHours", 4.2, "4.2 core hours"),
        ("report.services.violationShare", 0.00123, "0.123 %"),
        ("report.pods.pending + report.pods.refused", 3, "3 pods"),
        ("-report.scheduling.waitSeconds.p95 - 5.0", -12.5, "-12.5 seconds"),
        ('report.agents.evictions[?"BEMemoryEvict"].orValue(0.0)', 2, "2 pods"),
        ('report.overcommit["kubernetes.io/batch-memory"].offeredMean', 1024, "1024 bytes"),
        ("report.batch.coreHours - report.pods.pending", 4.2, "4.2"),
        ("report.batch.coreHours / 2.0", 4.2, "4.2"),
    ],
)
def test_a_value_is_told_with_its_unit_where_it_has_one(text: str, value: float, shown: str) -> None:
    assert Objective(text, (), maximise=True).shown(value) == shown
