"""Server-side apply and field ownership as pure functions."""

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import Conflict, Rejected, freeze, thaw
from koordpolicy.kube.apply import applied, tracked
from koordpolicy.kube.ownership import FieldManager, field_values, read_managers, show, write_managers
from koordpolicy.kube.resources import CONFIG_MAPS, NODE_METRICS, PODS
from koordpolicy.kube.shapes import shape_of

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"

names = st.sampled_from("abc")
containers: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={
            "image": st.sampled_from("xy"),
            "env": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from("XY"), "value": st.sampled_from("12")}),
                unique_by=operator.itemgetter("name"),
                max_size=2,
            ),
            "ports": st.lists(
                st.fixed_dictionaries({"containerPort": st.sampled_from([80, 81])}),
                unique_by=operator.itemgetter("containerPort"),
                max_size=2,
            ),
            "args": st.lists(names, max_size=2),
        },
    ),
    unique_by=operator.itemgetter("name"),
    max_size=3,
)
pods = st.builds(
    lambda containers, labels, finalizers: {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels, "finalizers": finalizers},
        "spec": {"containers": containers},
    },
    containers,
    st.dictionaries(names, st.sampled_from("12"), max_size=2),
    st.lists(st.sampled_from(["a/x", "b/x"]), unique=True),
)
managers = st.sampled_from(["git", "person", "robot"])
SHAPE = shape_of(PODS)


def apply(
    live: dict[str, Any], wanted: dict[str, Any], manager: str = "git", *, force: bool = False, now: str = NOW
) -> dict[str, Any]:
    return applied(freeze(live), thaw(wanted), SHAPE, manager=manager, force=force, now=now)


@given(pods)
def test_fields_survive_their_wire_form(pod: dict[str, Any]) -> None:
    fields = frozenset(field_values(pod, SHAPE))
    manager = FieldManager("git", "Apply", "", fields, NOW)
    pod["metadata"]["managedFields"] = write_managers([manager], "v1")
    assert read_managers(pod) == ((manager,) if fields else ())


@given(pods)
def test_applying_to_nothing_gives_what_was_applied(pod: dict[str, Any]) -> None:
    made = apply({}, pod)
    [entry] = made["metadata"].pop("managedFields")
    assert made == pod
    assert (entry["manager"], entry["operation"], entry["apiVersion"], entry["time"]) == (
        "git",
        "Apply",
        "v1",
        NOW,
    )


@given(pods, pods)
def test_applying_again_changes_nothing_not_even_the_time(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    live = apply(apply({}, first), second)
    assert apply(live, second, now=LATER) == live


@given(pods, pods)
def test_one_manager_alone_gets_what_it_applied_last(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = apply(apply({}, first), second)
    wanted = field_values(second, SHAPE)
    present = field_values(live, SHAPE)
    assert {path: value for path, value in present.items() if value not in ({}, [])} == {
        path: value for path, value in wanted.items() if value not in ({}, [])
    }


@given(st.lists(st.tuples(managers, pods, st.booleans()), min_size=1, max_size=5))
def test_who_applied_last_with_success_has_its_way(history: list[tuple[str, dict[str, Any], bool]]) -> None:
    live: dict[str, Any] = {}
    for manager, wanted, force in history:
        others = [f"`{entry.name}`" for entry in read_managers(live) if entry.name != manager]
        try:
            live = apply(live, wanted, manager, force=force)
        except Conflict as conflict:
            refusal = conflict.message
        else:
            refusal = ""
        if refusal:
            assert not force
            assert any(other in refusal for other in others)
            continue
        present = field_values(live, SHAPE)
        for path, value in field_values(wanted, SHAPE).items():
            assert value in ({}, []) or present[path] == value
        owned = {entry.name: entry.fields for entry in read_managers(live)}
        assert owned.get(manager, frozenset()) == frozenset(field_values(wanted, SHAPE))
    standing = {path[:end] for path in field_values(live, SHAPE) for end in range(1, len(path) + 1)}
    for entry in read_managers(live):
        empties = {path for path in entry.fields if path not in standing}
        assert all(path[-1] in ("f:labels", "f:args") for path in empties), (
            "only what is empty may be missing"
        )


@given(st.lists(st.tuples(managers, pods), min_size=1, max_size=4))
def test_letting_go_of_everything_leaves_nothing_owned(history: list[tuple[str, dict[str, Any]]]) -> None:
    live: dict[str, Any] = {}
    for manager, wanted in history:
        live = apply(live, wanted, manager, force=True)
    nothing = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    for manager in dict.fromkeys(manager for manager, _ in history):
        live = apply(live, nothing, manager)
    assert live["metadata"].pop("managedFields") == []
    assert all(value in ({}, []) for value in field_values(live, SHAPE).values())


def test_other_writes_take_what_they_change() -> None:
    wanted = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"a": "1", "b": "1"},
    }
    shape = shape_of(CONFIG_MAPS)
    live = applied({}, thaw(wanted), shape, manager="git", force=False, now=NOW)
    for manager, expected in (("", {"git": {"a"}}), ("robot", {"git": {"a"}, "robot": {"b"}})):
        written = thaw(live)
        written["data"] = {"a": "1", "b": "2"}
        tracked(freeze(live), written, shape, manager=manager, now=LATER)
        owned = {
            entry.name: {path[-1].removeprefix("f:") for path in entry.fields}
            for entry in read_managers(written)
        }
        assert owned == expected


def test_writes_of_nobody_on_an_object_of_nobody_are_not_tracked() -> None:
    new: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "managedFields": []},
    }
    tracked({}, new, shape_of(CONFIG_MAPS), manager="", now=NOW)
    assert "managedFields" not in new["metadata"]


def test_lists_of_custom_resources_are_owned_as_a_whole() -> None:
    obj = {"spec": {"list": [{"name": "a"}], "map": {"a": 1}}}
    assert set(field_values(obj, shape_of(NODE_METRICS))) == {
        ("f:spec", "f:list"),
        ("f:spec", "f:map", "f:a"),
    }


@pytest.mark.parametrize(
    "bad",
    [[{"image": "x"}], [{"name": "a"}, {"name": "a"}], ["a"], [{"name": None}]],
    ids=["no key", "twice", "no map", "null key"],
)
def test_items_must_be_told_apart(bad: list[Any]) -> None:
    with pytest.raises(Rejected, match=r"name|twice"):
        field_values({"spec": {"containers": bad}}, SHAPE)


def test_ports_without_protocol_are_tcp() -> None:
    [mark, field] = [
        path[-1] if path[-1].startswith("k:") else path[-2:]
        for path in field_values(
            {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}}, SHAPE
        )
        if "f:ports" in path
    ]
    assert mark == 'k:{"containerPort":80,"protocol":"TCP"}'
    assert field == (mark, "f:containerPort")


def test_paths_are_shown_as_people_write_them() -> None:
    path = ("f:spec", "f:containers", 'k:{"name":"a"}', "f:image")
    assert show(path) == '.spec.containers[name="a"].image'
    assert show(("f:metadata", "f:finalizers", 'v:"a/x"')) == '.metadata.finalizers[="a/x"]'
