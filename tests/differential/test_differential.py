"""A short run of random expressions, and what longer ones once found."""

from pathlib import Path

import pytest

from tests.differential.cases import Source, from_json, to_json
from tests.differential.run import Totals, disagreements

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.stem)
def test_what_was_found_agrees_now(file: Path) -> None:
    assert [str(one) for one in disagreements(from_json(file.read_text(encoding="utf-8")))] == []


def test_random_expressions_agree() -> None:
    source, totals = Source(20_260_101), Totals()
    while totals.expressions < 300:
        totals.visit(source.case())
    assert [str(one) for one in totals.disagreements] == []
    assert totals.compared["columns"] > 250
    assert totals.compared["cel-python"] > 10


def test_a_case_survives_its_file() -> None:
    source = Source(3)
    for _ in range(50):
        case = source.case()
        again = from_json(to_json(case, ""))
        assert (again.family, again.text, repr(again.rows)) == (case.family, case.text, repr(case.rows))
