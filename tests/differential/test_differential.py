"""A short run of random expressions, and what longer ones once found."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from koordpolicy.language.cel.library import FUNCTIONS
from tests.conformance.values import same
from tests.differential.cases import KUBERNETES, LIBRARY, Case, Source, from_json, to_json
from tests.differential.engines import OURS, Checked
from tests.differential.grammar import VARIABLES
from tests.differential.language import Writer
from tests.differential.literals import LITERALS
from tests.differential.outcomes import Error, Failed, Refused
from tests.differential.referees import PARTS, Referee
from tests.differential.rows import MAKES, row
from tests.differential.run import Run, disagreements
from tests.differential.wire import decoded, encoded

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))


@pytest.fixture(scope="module")
def programs(part: Callable[[str], Path]) -> Iterator[list[Referee]]:
    """cel-go and Kubernetes' functions on it."""
    started = [Referee(name, part(name)) for name in PARTS]
    yield started
    for program in started:
        program.close()


@pytest.mark.parametrize("file", FOUND, ids=lambda file: file.stem)
def test_what_was_found_agrees_now(file: Path) -> None:
    assert [str(one) for one in disagreements(from_json(file.read_text(encoding="utf-8")))] == []


def test_random_expressions_agree() -> None:
    run, source = Run(), Source(20_260_101, ("standard", "extended", "facts", "library"))
    run.visit([source.case() for _ in range(400)])
    assert [str(one) for one in run.totals.disagreements] == []
    assert run.totals.compared["columns"] > 300
    assert run.totals.compared["cel-python"] > 10


def test_random_expressions_agree_with_cel_go(programs: list[Referee]) -> None:
    run, source = Run(tuple(OURS), programs), Source(20_261_123, ("library", "kubernetes", "standard"))
    run.visit([source.case() for _ in range(500)])
    assert [str(one) for one in run.totals.disagreements] == []
    assert run.totals.compared["cel-go"] > 250
    assert run.totals.compared["kubernetes-cel"] > 50


@pytest.mark.parametrize("family", ["calls", "kubernetes calls"])
def test_every_function_agrees_with_cel_go(programs: list[Referee], family: str) -> None:
    """Each overload is called with random arguments."""
    run, source = Run(tuple(OURS), programs), Source(4, (family,))
    overloads = len(source.writer(family).calls)
    run.visit([source.case() for _ in range(overloads)])
    assert [str(one) for one in run.totals.disagreements] == []


def test_what_a_referee_says_otherwise_is_told(programs: list[Referee]) -> None:
    run, case = Run(tuple(OURS), programs), Case("library", "i + 1 == 8", ({"i": 7}, {"i": 8}, {}))
    run.visit([case])
    assert run.totals.disagreements == []
    assert run.totals.compared["cel-go"] == 1
    one = Checked(case)
    run.compare(
        one, "cel-go", [True, False, Failed("missing_fact")], [True, True, Error("no such attribute")]
    )
    run.compare(one, "cel-go", [True], Refused("undeclared reference"))
    run.compare(one, "cel-go", [Failed("overflow")], [True])
    assert [(told.row, told.engine) for told in run.totals.disagreements] == [
        (1, "cel-go"),
        (0, "cel-go"),
        (0, "cel-go"),
    ]


def test_every_function_is_called_by_some_case() -> None:
    """Those that no referee has are functions of units, and those of Kubernetes' lists that are ours."""
    known = {name for table in (LIBRARY, KUBERNETES) for name in table}
    ours = {name for name, function in FUNCTIONS.items() if function.library == "units"}
    assert FUNCTIONS.keys() - known - ours == {"min", "max", "percentile"} - known
    for table in (LIBRARY, KUBERNETES):
        called = {id for id, _ in Writer(random.Random(1), table).calls}
        missing = {one.id for row in table.values() for one in row.overloads} - called
        assert missing == set()


def test_every_kind_of_variable_and_literal_has_values() -> None:
    chance = random.Random(5)
    assert set(VARIABLES.values()) <= MAKES.keys()
    for kind in LITERALS:
        assert all(LITERALS[kind](chance) for _ in range(20)), kind


def test_a_case_survives_its_file() -> None:
    source = Source(3)
    for _ in range(50):
        case = source.case()
        again = from_json(to_json(case, ""))
        assert (again.family, again.text) == (case.family, case.text)
        assert same([dict(row) for row in again.rows], [dict(row) for row in case.rows])


def test_values_survive_the_wire() -> None:
    chance = random.Random(9)
    for _ in range(300):
        values = row(chance)
        assert same(decoded(encoded(values)), values)
