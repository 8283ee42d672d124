"""Strategic merge by itself; what the API server makes of patches stands in `tests/contract/cases/strategic_merge.yaml`."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.model.shapes import POD
from koordpolicy.model.strategic_merge import PatchError, strategic_merge


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("original", "patch", "message"),
    [
        (
            spec(containers=[]),
            spec(containers=[{"image": "1"}]),
            "spec.containers: every item needs .* `name`",
        ),
        (
            spec(containers=[]),
            spec(containers=["a"]),
            "spec.containers: every item needs its merge key `name`",
        ),
        (spec(containers=[]), spec(containers=[{"name": {}}]), "every item needs its merge key `name`"),
        ({"metadata": {}}, {"metadata": {"$patch": "shred"}}, "metadata: .* not `shred`"),
        (spec(volumes=[]), spec(volumes=[{"name": "v", "$patch": "merge"}]), "spec.volumes: .* not `merge`"),
        (
            spec(containers=[{"name": "a", "ports": []}]),
            spec(containers=[{"name": "a", "ports": [{}]}]),
            r"spec.containers\[a\].ports: every item needs its merge key `containerPort`",
        ),
        (spec(), {"$patch": "shred"}, "patch: .* not `shred`"),
        (spec(), spec(**{"$retainKeys": ["a"], "b": 1}), "spec: `b` is set but not among"),
        (spec(), spec(**{"$retainKeys": "a"}), "expected a list"),
        (spec(containers=[]), spec(**{"$setElementOrder/containers": {}}), "expected a list"),
        (spec(args=[]), spec(**{"$setElementOrder/args": [{}]}), "expected a list of plain values"),
        (
            spec(volumes=[{"name": "v"}]),
            spec(**{"$deleteFromPrimitiveList/volumes": [{"name": "v"}]}),
            "no plain values; delete them by",
        ),
        ({}, deep(100), "deeper than 64"),
        (deep(100), deep(100), "deeper than 64"),
        ({"a": 1}, {"$patch": "replace", **deep(100)}, "deeper than 64"),
    ],
)
def test_patches_that_cannot_be_applied(original: Any, patch: Any, message: str) -> None:
    with pytest.raises(PatchError, match=message):
        strategic_merge(original, patch, POD)


def test_a_list_over_a_map() -> None:
    patch = spec(containers=[{"name": "a"}])
    assert strategic_merge(spec(containers={"a": 1}), patch, POD) == patch


values = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2) | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
maps = st.dictionaries(st.sampled_from(["a", "b", "spec"]), values, max_size=3)


@given(maps, maps)
def test_a_patch_of_plain_values_applied_twice_changes_nothing_more(
    original: dict[str, Any], patch: dict[str, Any]
) -> None:
    once = strategic_merge(original, patch, POD)
    assert strategic_merge(once, patch, POD) == once
    assert strategic_merge(original, {}, POD) == original


names = st.sampled_from("abcd")
containers = st.lists(
    st.fixed_dictionaries(
        {"name": names}, optional={"image": st.sampled_from("xy"), "args": st.lists(names, max_size=2)}
    ),
    unique_by=lambda item: item["name"],
    max_size=4,
)


@given(containers, containers)
def test_each_item_stands_once_and_both_orders_are_kept(
    present: list[dict[str, Any]], patch: list[dict[str, Any]]
) -> None:
    given_ = spec(containers=present), spec(containers=patch)
    before = copy.deepcopy(given_)
    merged = strategic_merge(*given_, POD)["spec"]["containers"]
    assert given_ == before, "neither is changed"
    found = [item["name"] for item in merged]
    ours, theirs = [item["name"] for item in patch], [item["name"] for item in present]
    assert sorted(found) == sorted({*ours, *theirs})
    assert [name for name in found if name in ours] == ours
    assert [name for name in found if name not in ours] == [name for name in theirs if name not in ours]
    for item in patch:
        assert item.items() <= next(entry for entry in merged if entry["name"] == item["name"]).items()
