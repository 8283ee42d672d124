"""Strategic merge patches: each case as the API server applies it."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.strategic_merge import PatchError, merge_pod


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "mappings merge, null deletes": (
        {"metadata": {"labels": {"a": "1", "b": "2"}}},
        {"metadata": {"labels": {"b": None, "c": "3"}}},
        {"metadata": {"labels": {"a": "1", "c": "3"}}},
    ),
    "what is new comes without nulls": (
        {},
        {"metadata": {"labels": {"a": None, "b": "2"}}},
        {"metadata": {"labels": {"b": "2"}}},
    ),
    "containers merge by name": (
        spec(containers=[{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]),
        spec(containers=[{"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}]),
        spec(
            containers=[
                {
                    "name": "a",
                    "image": "2",
                    "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}],
                },
                {"name": "b"},
            ]
        ),
    ),
    "a new element comes before those it is not ordered with": (
        spec(containers=named("a", "b")),
        spec(containers=named("new")),
        spec(containers=named("new", "a", "b")),
    ),
    "a patched element keeps its place among the others": (
        spec(containers=named("a", "b", "c")),
        spec(containers=[{"name": "b", "image": "2"}]),
        spec(containers=[{"name": "a"}, {"name": "b", "image": "2"}, {"name": "c"}]),
    ),
    "patched elements follow the order of the patch": (
        spec(containers=named("a", "b", "c")),
        spec(containers=named("c", "a")),
        spec(containers=named("b", "c", "a")),
    ),
    "an element is deleted by directive": (
        spec(containers=named("a", "b")),
        spec(containers=[{"name": "a", "$patch": "delete"}]),
        spec(containers=named("b")),
    ),
    "a deleted element need not exist": (
        spec(containers=named("a")),
        spec(containers=[{"name": "z", "$patch": "delete"}]),
        spec(containers=named("a")),
    ),
    "a list is replaced by directive": (
        spec(containers=named("a", "b")),
        spec(containers=[{"$patch": "replace"}, {"name": "c"}]),
        spec(containers=named("c")),
    ),
    "a list that is replaced leaves out what is only marked": (
        spec(containers=named("a")),
        spec(
            containers=[{"$patch": "replace", "name": "x"}, {"name": "b"}, {"$patch": "delete", "name": "c"}]
        ),
        spec(containers=named("b")),
    ),
    "a new list leaves out what is only marked": (
        spec(),
        spec(containers=[{"name": "b"}, {"$patch": "delete", "name": "c"}]),
        spec(containers=named("b")),
    ),
    "ports merge by number": (
        spec(containers=[{"name": "a", "ports": [{"containerPort": 80, "name": "x"}]}]),
        spec(containers=[{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]),
        spec(containers=[{"name": "a", "ports": [{"containerPort": 80, "name": "x", "protocol": "TCP"}]}]),
    ),
    "lists without a merge key are replaced": (
        spec(tolerations=[{"key": "a"}], containers=[{"name": "a", "args": ["1", "2"]}]),
        spec(tolerations=[{"key": "b"}], containers=[{"name": "a", "args": ["3"]}]),
        spec(tolerations=[{"key": "b"}], containers=[{"name": "a", "args": ["3"]}]),
    ),
    "finalizers merge as a set": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["c", "a"]}},
        {"metadata": {"finalizers": ["c", "a", "b"]}},
    ),
    "finalizers are deleted by directive": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
    "a mapping is replaced by directive": (
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
        {"metadata": {"labels": {"b": "2"}}},
    ),
    "a mapping is emptied by directive": (
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "delete"}}},
        {"metadata": {"labels": {}}},
    ),
    "only retained keys stay": (
        spec(volumes=[{"name": "v", "emptyDir": {}}]),
        spec(volumes=[{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]),
        spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
    ),
    "the order of elements is set by directive": (
        spec(containers=named("a", "b", "c")),
        {
            "spec": {
                "$setElementOrder/containers": named("c", "a"),
                "containers": [{"name": "a", "image": "1"}],
            }
        },
        spec(containers=[{"name": "b"}, {"name": "c"}, {"name": "a", "image": "1"}]),
    ),
    "a value changes its type": (
        {"spec": {"overhead": {"cpu": "1"}}},
        {"spec": {"overhead": "none"}},
        {"spec": {"overhead": "none"}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    original, patch, expected = CASES[name]
    kept = copy.deepcopy((original, patch))
    assert merge_pod(original, patch) == expected
    assert (original, patch) == kept, "neither is changed"


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("original", "patch", "message"),
    [
        ({"spec": {"containers": []}}, spec(containers=[{"image": "1"}]), "every element needs its `name`"),
        ({"spec": {"containers": []}}, spec(containers=["a"]), "every element needs its `name`"),
        ({"metadata": {}}, {"metadata": {"$patch": "shred"}}, "not `shred`"),
        (spec(volumes=[]), spec(volumes=[{"name": "v", "$patch": "merge"}]), "not `merge`"),
        ({"spec": {}}, {"spec": {"$retainKeys": ["a"], "b": 1}}, "`b` is set but not among"),
        ({"spec": {}}, {"spec": {"$retainKeys": "a"}}, "expected a list"),
        (
            {"metadata": {"finalizers": []}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": 1}},
            "a list",
        ),
        ({"spec": {"containers": []}}, {"spec": {"$setElementOrder/containers": {}}}, "expected a list"),
        ({}, deep(100), "deeper than 64"),
        (deep(100), deep(100), "deeper than 64"),
    ],
)
def test_patches_that_cannot_be_applied(original: Any, patch: Any, message: str) -> None:
    with pytest.raises(PatchError, match=message):
        merge_pod(original, patch)


VALUES = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2) | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(st.sampled_from(["a", "b", "spec"]), VALUES, max_size=3)


@given(MAPPINGS, MAPPINGS)
def test_a_patch_of_plain_values_applied_twice_changes_nothing_more(
    original: dict[str, Any], patch: dict[str, Any]
) -> None:
    once = merge_pod(original, patch)
    assert merge_pod(once, patch) == once
    assert merge_pod(original, {}) == original
