"""Pickles that are read in half the time give what was written."""

import pickle
from dataclasses import dataclass, field
from typing import Any

import pytest

from koordpolicy.graph import Compiler, Layer
from koordpolicy.language.cel.ir import Const, Node
from koordpolicy.language.cel.types import INT
from koordpolicy.language.cel.values import Optional
from koordpolicy.language.kinds.table import KINDS
from koordpolicy.runtime.pickling import dumps
from koordpolicy.runtime.policies.packs import BARE, OWN, find_pack


@dataclass(frozen=True, slots=True)
class _Counted:
    value: int
    more: int = field(init=False, default=7)


@dataclass(frozen=True, slots=True)
class _Begun:
    value: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", self.value + 1)


@dataclass(slots=True)
class _Open:
    value: list[object]


def _read_back(value: Any) -> Any:
    return pickle.loads(dumps(value))  # noqa: S301 - written above


@pytest.mark.parametrize(
    "value",
    [
        Const(INT, 5, "5", start=3, end=4),
        Node(INT),
        _Counted(3),
        _Begun(3),
        _Open([1, (2, "three")]),
        Optional(1),
        next(iter(KINDS.values())),
        {("a", 1): frozenset({"x"}), "b": _Counted},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_read_is_what_was_written(value: object) -> None:
    assert repr(_read_back(value)) == repr(value)


def test_positions_that_do_not_count_in_comparisons_are_kept() -> None:
    read = _read_back(Const(INT, 5, "5", start=3, end=4))
    assert (read.value, read.start, read.end) == (5, 3, 4)


def test_what_is_shared_stays_shared() -> None:
    one = Const(INT, 5, "5")
    first, second = _read_back([one, (one,)])
    assert first is second[0]


def test_what_refers_to_itself_is_read_as_it_was() -> None:
    value = _Open([])
    value.value.append(value)
    read = _read_back(value)
    assert read.value[0] is read


def test_a_whole_pack_is_the_same_policies_afterwards() -> None:
    made, learned = Compiler(find_pack), Compiler(find_pack)
    digest = made.compile(own := Layer(OWN, dict([BARE]))).graph
    learned.learn(_read_back(made.kept()))
    found = learned.compile(own)
    assert digest is not None
    assert found.graph is not None
    assert found.graph.digest == digest.digest
    assert len(learned.made) < len(made.kept()) / 100
