"""A short run of random clusters, and what longer ones once found."""

import asyncio
from pathlib import Path

import pytest

from tests.differential_scheduling.case import Case, from_json
from tests.differential_scheduling.drawing import draw
from tests.differential_scheduling.real import real_scheduler
from tests.differential_scheduling.run import Totals, ask, disagreements
from tests.parts.fixtures import need

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.stem)
def test_what_was_found_agrees_now(file: Path) -> None:
    assert [str(one) for one in disagreements(from_json(file.read_text(encoding="utf-8")))] == []


def test_random_clusters_agree_with_the_oracle() -> None:
    totals = Totals()
    for number in range(20):
        totals.visit(draw(20_260_101, number, 20))
    assert [str(one) for one in totals.disagreements] == []
    assert totals.pods["fit nowhere"] > 50
    assert totals.pods["fit somewhere"] > 150
    assert totals.pods["could displace others"] > 5
    assert len(totals.refusals) > 15


def test_random_clusters_agree_with_kube_scheduler(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    need(pytestconfig, "etcd", "kube-apiserver", "kube-scheduler")

    async def run() -> Totals:
        totals = Totals()
        async with real_scheduler(tmp_path) as real:
            for number in range(3):
                totals.add(await ask(real, draw(20_260_102, number, 20)))
        return totals

    totals = asyncio.run(run())
    assert [str(one) for one in totals.disagreements] == []
    assert totals.not_taken == []
    assert totals.pods["fit nowhere"] > 5
    assert totals.pods["fit somewhere"] > 15


def test_a_case_survives_its_file() -> None:
    for number in range(5):
        case = draw(3, number, 4)
        again = from_json(case.to_json())
        assert again == Case(list(case.objects), list(case.pods))
