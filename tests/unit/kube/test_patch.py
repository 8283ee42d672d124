"""Patches as pure functions. Cases stand in `cases/`; those of strategic merge in `tests/contract/cases`."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import Invalid, JsonPatch, KubeError, MergePatch, Rejected, StrategicPatch, freeze, thaw
from koordpolicy.kube.patch import MAX_COPIED, MAX_OPERATIONS, merge, patched
from koordpolicy.kube.resources import NODE_METRICS, PODS

CASES = Path(__file__).parent / "cases"
FORMS: dict[str, Any] = {
    "json_patch": JsonPatch,
    "merge_patch": MergePatch,
}
ERRORS = {"Invalid": Invalid, "Rejected": Rejected}


def cases() -> list[Any]:
    return [
        pytest.param(FORMS[form], case, id=f"{form}: {case['name']}")
        for form in FORMS
        for case in json.loads((CASES / f"{form}.json").read_text())
    ]


@pytest.mark.parametrize(("form", "case"), cases())
def test_cases(form: Any, case: dict[str, Any]) -> None:
    given_, patch = freeze(case["given"]), form(case["patch"])
    if "error" in case:
        with pytest.raises(ERRORS[case["error"]]) as refusal:
            patched(thaw(given_), patch, PODS)
        assert type(refusal.value) is ERRORS[case["error"]]
    else:
        assert patched(thaw(given_), patch, PODS) == case["expect"]


names = st.sampled_from("abcd")
leaves = st.none() | st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2)
trees: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8
)
maps: st.SearchStrategy[dict[str, Any]] = st.dictionaries(names, trees, max_size=3)


@given(maps, maps)
def test_a_merge_patch_applied_twice_changes_nothing_more(
    target: dict[str, Any], patch: dict[str, Any]
) -> None:
    once = merge(thaw(target), thaw(patch))
    assert merge(thaw(once), thaw(patch)) == once


@given(maps, maps)
def test_without_keyed_lists_a_strategic_patch_is_a_merge_patch(
    target: dict[str, Any], patch: dict[str, Any]
) -> None:
    def numbers_only(value: Any) -> Any:
        return {key: numbers_only(item) for key, item in value.items()} if isinstance(value, dict) else value

    as_merge = patched(thaw(target), MergePatch(patch), PODS)
    assert patched(numbers_only(target), StrategicPatch(patch), PODS) == as_merge


def test_custom_resources_take_no_strategic_patch() -> None:
    with pytest.raises(Rejected, match="merge patch"):
        patched({}, StrategicPatch({"spec": {}}), NODE_METRICS)


def test_a_strategic_patch_that_cannot_be_applied_is_rejected() -> None:
    with pytest.raises(Rejected, match=r"cannot be applied: spec.containers: every item needs"):
        patched({"spec": {"containers": []}}, StrategicPatch({"spec": {"containers": [{}]}}), PODS)


def test_patches_have_limits() -> None:
    many = JsonPatch([{"op": "add", "path": "/a", "value": 1}] * (MAX_OPERATIONS + 1))
    with pytest.raises(Rejected, match=str(MAX_OPERATIONS)):
        patched({}, many, PODS)
    doubling = JsonPatch([{"op": "copy", "from": "/a", "path": "/a/-"}] * 100)
    with pytest.raises(Rejected, match=str(MAX_COPIED)):
        patched({"a": [[]]}, doubling, PODS)
    for body in ({"op": "add"}, "text"):
        with pytest.raises(Rejected):
            patched({}, JsonPatch(body), PODS)  # type: ignore[arg-type]  # the point
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    for patch in (
        MergePatch(deep),
        StrategicPatch(deep),
        JsonPatch([{"op": "add", "path": "/a", "value": deep}]),
    ):
        with pytest.raises(Rejected, match="nested"):
            patched({}, patch, PODS)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["op", "path", "from", "value"]),
            st.sampled_from(
                [
                    "add",
                    "remove",
                    "replace",
                    "move",
                    "copy",
                    "test",
                    "/a",
                    "/a/b",
                    "/l/0",
                    "/l/-",
                    "",
                    "/",
                    "x",
                    1,
                    None,
                ]
            ),
        ),
        max_size=5,
    )
)
def test_whatever_a_patch_says_the_answer_is_an_object_or_a_clear_error(operations: list[Any]) -> None:
    try:
        result = patched({"a": {"b": 1}, "l": [1, 2]}, JsonPatch(operations), PODS)
    except KubeError:
        return
    assert isinstance(result, dict)
