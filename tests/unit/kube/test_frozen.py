"""Objects that cannot be changed, and the copies that can."""

import copy
import json
import pickle
from collections import OrderedDict
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import Rejected, freeze, thaw
from koordpolicy.kube.frozen import MAX_DEPTH, FrozenDict, FrozenList, is_json, replaced

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)
objects = st.dictionaries(st.text(), values)


@given(objects)
def test_freezing_and_thawing_keep_what_is_said(obj: dict[str, Any]) -> None:
    frozen = freeze(obj)
    assert frozen == obj
    assert thaw(frozen) == obj
    assert json.loads(json.dumps(frozen)) == json.loads(json.dumps(obj))
    assert freeze(thaw(frozen)) == frozen


@given(objects)
def test_what_is_json_already_needs_no_freezing(obj: dict[str, Any]) -> None:
    assert is_json(obj)
    assert is_json(freeze(obj))
    assert is_json({"a": [freeze(obj), obj]})


@pytest.mark.parametrize(
    "odd", [{1: "a"}, {"a": b""}, {"a": [float("nan")]}, {"a": (1,)}, OrderedDict(a=1), MappingProxyType({})]
)
def test_what_is_none_or_not_yet_is_told_from_it(odd: Any) -> None:
    assert not is_json(odd)
    assert not is_json({"inner": [odd]})


@pytest.mark.parametrize("step", [lambda inner: {"a": inner}, lambda inner: [inner]])
def test_what_is_json_nests_no_deeper_than_what_can_be_frozen(step: Any) -> None:
    value: Any = {}
    for _ in range(MAX_DEPTH - 1):
        value = step(value)
    assert is_json(value)
    assert not is_json(step(value))


@given(objects)
def test_a_thawed_copy_shares_nothing_that_can_be_changed(obj: dict[str, Any]) -> None:
    frozen = freeze(obj)

    def spoil(value: Any) -> None:
        assert type(value) not in (FrozenDict, FrozenList)
        if isinstance(value, dict):
            for item in value.values():
                spoil(item)
            value["spoilt"] = True
        elif isinstance(value, list):
            for item in value:
                spoil(item)
            value.append("spoilt")

    spoil(thaw(frozen))
    assert frozen == obj


def test_what_is_frozen_is_shared_and_not_copied() -> None:
    inner = freeze({"a": [1, 2]})
    outer = freeze({"inner": inner})
    assert freeze(inner) is inner
    assert outer["inner"] is inner


OBJECT = freeze({"map": {"a": 1}, "list": [1, 2]})
CHANGES: dict[str, Any] = {
    "set": lambda: OBJECT["map"].__setitem__("a", 2),
    "delete": lambda: OBJECT["map"].__delitem__("a"),
    "update": lambda: OBJECT["map"].update(b=2),
    "pop": lambda: OBJECT["map"].pop("a"),
    "popitem": OBJECT["map"].popitem,
    "clear": OBJECT["map"].clear,
    "setdefault": lambda: OBJECT["map"].setdefault("b", 1),
    "merge": lambda: OBJECT["map"].__ior__({"b": 1}),
    "item": lambda: OBJECT["list"].__setitem__(0, 9),
    "append": lambda: OBJECT["list"].append(3),
    "extend": lambda: OBJECT["list"].extend([3]),
    "insert": lambda: OBJECT["list"].insert(0, 3),
    "remove": lambda: OBJECT["list"].remove(1),
    "sort": OBJECT["list"].sort,
    "reverse": OBJECT["list"].reverse,
    "list clear": OBJECT["list"].clear,
    "list pop": OBJECT["list"].pop,
    "list delete": lambda: OBJECT["list"].__delitem__(0),
    "add": lambda: OBJECT["list"].__iadd__([3]),
    "repeat": lambda: OBJECT["list"].__imul__(2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_refused_with_the_remedy(change: Any) -> None:
    with pytest.raises(TypeError, match="thaw"):
        change()
    assert OBJECT == {"map": {"a": 1}, "list": [1, 2]}


def test_copies_by_other_means_are_plain() -> None:
    for plain in (
        copy.copy(OBJECT),
        copy.deepcopy(OBJECT),
        pickle.loads(pickle.dumps(OBJECT)),  # noqa: S301  # our own bytes
        OBJECT | {},
        dict(OBJECT),
    ):
        assert plain == OBJECT
        assert type(plain) is dict
    deep = copy.deepcopy(OBJECT)
    deep["list"].append(3)
    assert type(copy.copy(OBJECT["list"])) is list
    assert type(copy.deepcopy(OBJECT["list"])) is list
    assert type(pickle.loads(pickle.dumps(OBJECT["list"]))) is list  # noqa: S301  # our own bytes


class Word(StrEnum):
    ONE = "one"


def test_relatives_of_json_types_become_plain_json() -> None:
    frozen = freeze(
        MappingProxyType(
            {"word": Word.ONE, "tuple": (1, 2), "map": OrderedDict(a=1), "view": MappingProxyType({"b": 2})}
        )
    )
    assert frozen == {"word": "one", "tuple": [1, 2], "map": {"a": 1}, "view": {"b": 2}}
    assert type(frozen["word"]) is str
    assert thaw({"view": MappingProxyType({"b": (1,)})}) == {"view": {"b": [1]}}


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": {"b": object()}}, r"\.a\.b"),
        ({"a": [{"b": 1}, {"c": {1, 2}}]}, r"\.a\[1\]\.c"),
        ({"a": {1: "x"}}, r"\.a"),
        ({"a": [0.5, float("inf")]}, r"\.a\[1\]"),
        ({"a": float("nan")}, r"\.a"),
        ({"a": b"bytes"}, r"\.a"),
    ],
)
def test_what_is_not_json_is_rejected_with_its_place(value: Any, place: str) -> None:
    with pytest.raises(Rejected, match=place):
        freeze(value)


def test_nesting_has_a_limit() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(levels - 1):
            value = {"a": value}
        return value

    assert freeze(nested(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(Rejected, match="nested deeper"):
            freeze(nested(levels))


def test_replacing_shares_what_did_not_change() -> None:
    changed = replaced(OBJECT, ("map", "deep", "er"), [5])
    assert changed == {"map": {"a": 1, "deep": {"er": [5]}}, "list": [1, 2]}
    assert changed["list"] is OBJECT["list"]
    assert "deep" not in OBJECT["map"]
    assert type(changed["map"]["deep"]) is FrozenDict
