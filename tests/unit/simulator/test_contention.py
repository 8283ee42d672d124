"""The document of contention's parameters, and how services answer by them on nodes that fill."""

from pathlib import Path

import numpy as np
import pytest

from koordpolicy.model.node import Node
from koordpolicy.simulator.answering import Answering, Answers
from koordpolicy.simulator.contention import DEFAULT, read_contention
from koordpolicy.simulator.fleet import Fleet
from koordpolicy.simulator.machines import RunningPod, machine_of
from koordpolicy.simulator.usage import SHAPE
from koordpolicy.simulator.workload import WorkloadError

SHIPPED = DEFAULT.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("value: 2ms", "value: 2", ":7: `work`: "),
        ("value: 2ms", "value: 0ms", ":7: `work`: a duration of more than nothing"),
        ("value: 1%", "value: 1", "`missed`: a percentage from 0% to 100%"),
        ("value: 99%", "value: 100%", "`quantile`: a percentage between 0% and 100%"),
        ("value: 4\n", "value: 0\n", "`searched`: a whole number from 1"),
        ("value: 1\n", "value: -1\n", "`variation`: a number from 0"),
        ("  work:", "  wrok:", "unknown parameter `wrok`; there are `work`"),
        ("parameters:", "parameter:", "`parameters` is needed"),
        ("    source: an assumption, the request", "    from: an assumption, the request", "`work` needs a `value` and a `source`"),
        ("  work:", "  - work:", ":"),
    ],
)  # fmt: skip
def test_a_document_that_is_wrong_is_told_by_its_line(old: str, new: str, told: str, tmp_path: Path) -> None:
    assert old in SHIPPED
    file = tmp_path / "own.yaml"
    file.write_text(SHIPPED.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(WorkloadError) as error:
        read_contention(file)
    assert told in str(error.value)
    assert str(error.value).startswith(f"{file}:")


def test_a_document_that_leaves_out_a_parameter_is_none(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("parameters:\n  work: {value: 2ms, source: seen}\n", encoding="utf-8")
    with pytest.raises(WorkloadError, match="there is no `variation`"):
        read_contention(file)


def answers(service: float, best_effort: float = 0.0, others: float = 0.0) -> Answers:
    """A service of 8 CPUs on a node of 32 that uses so many millicores, beside best-effort work and a job with requests."""
    amounts = {"cpu": 32_000, "memory": 1 << 35}
    fleet = Fleet([machine_of(Node("a", capacity=amounts, allocatable=amounts), SHAPE)])
    machine = fleet.machines[0]
    kinds = ((False, None, 8000), (True, 1.0, 16_000), (False, 1.0, 16_000))
    for slot, (grouped, remaining, request) in enumerate(kinds):
        key = ("default", str(slot))
        pod = RunningPod(key, machine, slot, grouped, 0, "", "", 0, remaining, request=request)
        machine.pods[key] = pod
        fleet.add(pod, "batch" if grouped else "prod")
    wishes = np.array([service, best_effort, others])
    fleet.share(wishes)
    return Answering(read_contention()).answers(fleet, wishes)


def test_only_who_has_no_end_and_is_no_best_effort_work_is_a_service() -> None:
    assert answers(2000, 8000, 8000).services == 1


def test_services_answer_slower_the_fuller_their_node_is_of_others() -> None:
    alone, beside, full = answers(2000), answers(2000, best_effort=29_000), answers(2000, others=27_000)
    assert alone.violating == 0
    assert alone.tail < beside.tail < full.tail
    # Best-effort work gives way, others take what they request.
    assert answers(2000, best_effort=24_000).tail < answers(2000, others=24_000).tail


def test_a_service_that_gets_less_than_it_wishes_violates_its_objective() -> None:
    short = answers(8000, others=32_000)
    assert short.violating == 1
    assert short.tail == read_contention().patience


def test_a_service_at_its_limit_is_slower_than_it_may_be() -> None:
    assert answers(6000).violating == 0
    assert answers(7600).violating == 1
