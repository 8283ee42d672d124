"""A patch makes of the old value the new one, and says no more than what changed."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.json_patch import json_patch

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(("", "a", "b/c", "d~e"))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(("a", "b/c", "d~e", "")), inner, max_size=4),
    ),
    max_leaves=12,
)


def applied(value: Any, patch: list[dict[str, Any]]) -> Any:
    """RFC 6902 by the letter, for the operations that are made."""
    root = {"": copy.deepcopy(value)}
    for one in patch:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in one["path"].split("/")]
        parent: Any = root
        for step in steps[:-1]:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        last = steps[-1]
        if isinstance(parent, list):
            if one["op"] == "add":
                assert last == "-"
                parent.append(one["value"])
            elif one["op"] == "remove":
                del parent[int(last)]
            else:
                parent[int(last)] = one["value"]
        elif one["op"] == "remove":
            del parent[last]
        else:
            assert (last in parent) is (one["op"] == "replace")
            parent[last] = one["value"]
    return root[""]


def same(one: Any, other: Any) -> bool:
    """Equal as JSON, where `true` is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


@given(VALUES, VALUES)
def test_it_makes_of_one_value_the_other(old: Any, new: Any) -> None:
    patch = json_patch(old, new)
    assert same(applied(old, patch), new)
    assert (patch == []) is same(old, new)


POD = {"metadata": {"name": "p", "labels": {"a": "1"}}, "spec": {"containers": [{"name": "x", "image": "i"}]}}

CASES = (
    ({**POD, "metadata": {"name": "p", "labels": {"a": "2"}}}, [("replace", "/metadata/labels/a")]),
    ({**POD, "metadata": {"name": "p"}}, [("remove", "/metadata/labels")]),
    (
        {**POD, "metadata": {**POD["metadata"], "annotations": {"k/v": "1"}}},  # type: ignore[dict-item]
        [("add", "/metadata/annotations")],
    ),
    (
        {**POD, "spec": {"containers": [{"name": "x", "image": "i", "tty": True}]}},
        [("add", "/spec/containers/0/tty")],
    ),
)


@pytest.mark.parametrize(("new", "said"), CASES)
def test_it_says_only_what_changed(new: Any, said: list[tuple[str, str]]) -> None:
    assert [(one["op"], one["path"]) for one in json_patch(POD, new)] == said


def test_what_both_share_is_not_looked_into() -> None:
    class Untouchable(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError

    shared = Untouchable(a=1)
    assert json_patch({"x": shared, "y": 1}, {"x": shared, "y": 2}) == [
        {"op": "replace", "path": "/y", "value": 2}
    ]
