"""Programs that go to another process mean there what they mean here."""

import pickle

import pytest

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.lower.portable import Portable, loaded, portable
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from tests.unit.language.cel.columns.support import NOW, ROOT_NAMES, typed

FACTS = {"name": "n7", "labels": {"pool": "a", "zone": "z1"}, "capacity.cpu": 64_000}
POD = {"name": "p", "namespace": "default", "labels": {"app": "web"}, "priority": 9}

PORTABLE = (
    "node.capacity.cpu * percent(65) - cpu('2')",
    "node.labels['pool'] in ['a', 'b', 'c', 'd', 'e']",
    "node.name.matches('^n[0-9]+$') && pod.labels.exists(key, key.startsWith('a'))",
    "node.name.replace('n', 'm').upperAscii() + '%s'.format([pod.name])",
    "regex.extract(node.name, 'n([0-9]+)').orValue('none')",
    "[3, 1, 2].map(x, x * pod.priority).sort()",
    "node.labels['missing']",
    "math.greatest(pod.priority, 10) / 0",
)


def answer(program: RowProgram) -> object:
    try:
        return program.call(FACTS, POD, NOW)
    except CelError as error:
        return error.kind, str(error)


@pytest.mark.parametrize("text", PORTABLE)
def test_a_program_that_was_sent_answers_as_the_one_that_was_made(text: str) -> None:
    made = compile_row(ROOT_NAMES, typed(text))
    given = portable(made)
    assert given is not None
    sent: Portable = pickle.loads(pickle.dumps(given))  # noqa: S301 - our own
    again = loaded(sent, DEFAULT_BUDGET)
    assert answer(again) == answer(made)
    assert (again.source, again.facts, again.price, again.metered) == (
        made.source,
        made.facts,
        made.price,
        made.metered,
    )


def test_a_program_that_holds_more_than_plain_values_stays() -> None:
    assert portable(compile_row(ROOT_NAMES, fold(typed("node.labels[?'a'].or(optional.of('x'))")))) is None


def test_what_this_process_has_no_function_for_is_refused() -> None:
    given = portable(compile_row(ROOT_NAMES, typed("node.name.upperAscii()")))
    assert given is not None
    names = dict.fromkeys(given.recipes, ("function", "gone()"))
    with pytest.raises(LookupError, match=r"gone\(\)"):
        loaded(
            Portable(given.roots, given.source, given.facts, given.metered, given.price, names),
            DEFAULT_BUDGET,
        )
