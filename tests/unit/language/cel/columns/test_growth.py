"""Evaluations leave nothing behind."""

import gc
import weakref
from types import TracebackType

import pytest

from koordpolicy.language.cel.errors import CelError
from tests.unit.language.cel.columns.support import NOW, columns, table_of


class Held:
    """Something that a caller works on while it asks."""


@pytest.mark.parametrize(
    "text",
    [
        "dyn(uint(pod.name))",
        "[uint(pod.name)]",
        "{'a': duration(pod.name)}",
        "optional.of(int(pod.name)).value() + node.capacity.pods",
    ],
)
def test_an_error_of_all_rows_does_not_keep_the_frames_that_asked(text: str) -> None:
    program, table = columns(text), table_of([{"capacity.pods": 1}, {}])

    def ask() -> weakref.ref[Held]:
        held = Held()
        result = program.call(table, {"pod": {"name": "F"}, "now": NOW})
        assert result.errors is not None and result.errors.all()
        return weakref.ref(held)

    found = ask()
    gc.collect()
    assert found() is None


def test_errors_that_programs_give_hold_no_traceback() -> None:
    program = columns("dyn(uint(pod.name))")
    program.call(table_of([{}, {}]), {"pod": {"name": "F"}, "now": NOW})
    gc.collect()
    traces = [
        error.__traceback__
        for error in gc.get_objects()
        if isinstance(error, CelError) and "`F`" in error.message
    ]
    assert not any(isinstance(trace, TracebackType) for trace in traces)
