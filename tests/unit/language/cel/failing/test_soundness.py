"""Whatever the expression and its facts: an evaluation that ends in an error was foreseen."""

import os
from collections.abc import Collection, Iterator

import pytest

from koordpolicy.language.cel.errors import CelError, LimitExceeded
from koordpolicy.language.cel.failing import FailureCause, TooManySteps, could_fail, failures
from koordpolicy.language.cel.lower.row import compile_row
from tests.differential.cases import FAMILIES, Source
from tests.differential.engines import Checked

COUNT = int(os.environ.get("KOORDPOLICY_FORESEEN_EXAMPLES", "500"))
OUT_OF_SCOPE = (LimitExceeded,)
"""Errors that nobody foresees here: what an expression may cost stands in another check (KP601)."""


class AnythingMayBeMissing:
    """The presence of facts in a test, where rows lack some of them."""

    def fact(self, root: str | None, record: str, path: str) -> bool:
        return True

    def root(self, name: str) -> bool:
        return True

    def with_fact(self, record: str, path: str) -> Collection[str]:
        return ()

    def roots_of(self, root: str, texts: Collection[str]) -> Collection[str]:
        return ()

    def never_negative(self, record: str, path: str) -> bool:
        return False


def errors_of(one: Checked) -> Iterator[CelError]:
    """How its evaluations end that end in an error."""
    program = compile_row(one.roots, one.folded)
    for row in one.case.rows:
        values = one.values(row)
        try:
            program.call(*(values.get(name) for name in one.roots))
        except OUT_OF_SCOPE:
            continue
        except CelError as error:
            yield error


@pytest.mark.parametrize("family", FAMILIES)
def test_every_error_was_foreseen(family: str) -> None:
    source, unforeseen, failing, quiet = Source(7, [family]), [], 0, 0
    for _ in range(COUNT):
        one = Checked(source.case())
        found = list(errors_of(one))
        try:
            foreseen = bool(failures(one.folded, AnythingMayBeMissing(), bounded=False))
        except TooManySteps:
            continue
        failing += bool(found)
        quiet += not foreseen
        if found and not foreseen:
            unforeseen.append((one.case.text, str(found[0])))
    assert not unforeseen, unforeseen[:5]
    assert failing > COUNT // 50, "hardly anything fails, so that nothing was tried"
    assert quiet > 0, "everything is said to fail, so that nothing is told"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_quick_look_misses_nothing(family: str) -> None:
    source, spared = Source(11, [family]), 0
    for _ in range(COUNT):
        one = Checked(source.case())
        for bounded in (False, True):
            try:
                found = failures(one.folded, AnythingMayBeMissing(), bounded=bounded)
            except TooManySteps:
                continue
            quick = set(could_fail(one.folded, AnythingMayBeMissing(), bounded=bounded))
            if quick <= {FailureCause.FACT}:
                assert {failure.cause for failure in found} <= quick, one.case.text
                spared += 1
    assert spared > 0, "everything is looked at twice, so that nothing is gained"
