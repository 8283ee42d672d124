"""The local copy of a resource."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import EventType, Object, WatchEvent
from koordpolicy.kube.memory import Store
from koordpolicy.kube.mirror import Mirror, ObjectChange, key_of
from koordpolicy.kube.resources import PODS
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.unreadable import Unreadable
from tests.hostile.objects import NAMELESS
from tests.unit.kube.builders import pod, store


def obj(name: str, version: int, *, uid: str = "", app: str = "") -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "labels": {"app": app} if app else {},
        }
    }


def by_app(found: Object) -> tuple[str, ...]:
    return tuple(found["metadata"]["labels"].values())


class Heard:
    """A handler that notes changes as text."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __call__(self, change: ObjectChange) -> None:
        sign = "+" if change.old is None else "-" if change.new is None else "~"
        self.words.append(sign + change.key[1])

    def taken(self) -> list[str]:
        words, self.words = self.words, []
        return words


def mirror() -> tuple[Mirror, Heard]:
    heard = Heard()
    return Mirror(indexes={"app": by_app}, handlers=[heard]), heard


def event(kind: EventType, found: dict[str, Any]) -> WatchEvent:
    return WatchEvent(kind, found)


def test_only_differences_of_a_list_are_heard() -> None:
    copy, heard = mirror()
    copy.replace([obj("a", 1), obj("b", 2)], "5")
    assert heard.taken() == ["+a", "+b"]
    copy.replace([obj("a", 1), obj("b", 6), obj("c", 7)], "7")
    assert heard.taken() == ["~b", "+c"]
    copy.replace([obj("c", 7)], "9")
    assert heard.taken() == ["-a", "-b"]
    assert copy.resource_version == "9"
    assert list(copy.objects) == [("default", "c")]


def test_a_successor_of_the_same_name_is_another_object() -> None:
    copy, heard = mirror()
    copy.replace([obj("a", 1)], "1")
    copy.replace([obj("a", 5, uid="new")], "5")
    assert heard.taken() == ["+a", "-a", "+a"]
    copy.apply(event(EventType.MODIFIED, obj("a", 8, uid="newer")))
    assert heard.taken() == ["-a", "+a"]


def test_events_move_the_version_and_repeated_ones_nothing_else() -> None:
    copy, heard = mirror()
    copy.replace([], "1")
    added = event(EventType.ADDED, obj("a", 3))
    for _ in range(2):
        copy.apply(added)
    assert heard.taken() == ["+a"]
    copy.apply(event(EventType.BOOKMARK, {"metadata": {"resourceVersion": "9"}}))
    assert (heard.taken(), copy.resource_version) == ([], "9")
    for _ in range(2):
        copy.apply(event(EventType.DELETED, obj("a", 10)))
    assert (heard.taken(), copy.resource_version) == (["-a"], "10")
    assert copy.get("a", "default") is None


def test_handlers_see_the_mirror_as_it_is_after_the_change() -> None:
    seen: list[Any] = []
    copy = Mirror(handlers=[lambda change: seen.append(copy.get("a", "default"))])
    copy.apply(event(EventType.ADDED, obj("a", 1)))
    copy.apply(event(EventType.DELETED, obj("a", 2)))
    assert seen == [obj("a", 1), None]


def test_what_a_handler_or_an_index_raises_concerns_that_object_alone() -> None:
    def fails(change: ObjectChange) -> None:
        if change.key[1] == "a":
            raise ZeroDivisionError(change.key[1])

    def fails_too(one: Object) -> list[str]:
        raise ObjectError("spec: is no mapping")

    told: list[Unreadable] = []
    seen: list[str] = []
    copy = Mirror(
        indexes={"x": fails_too},
        handlers=[fails, lambda change: seen.append(change.key[1])],
        on_unreadable=lambda _, why: told.append(why),
    )
    for name in "ab":
        copy.apply(event(EventType.ADDED, obj(name, 1)))
    copy.apply(event(EventType.DELETED, obj("a", 2)))
    assert seen == ["a", "b", "a"]
    assert [why.reason for why in told] == [
        "spec: is no mapping",
        "internal error, please report: ZeroDivisionError: a",
        "spec: is no mapping",
        "internal error, please report: ZeroDivisionError: a",
    ]
    assert [type(why.cause) for why in told if why.cause] == [ZeroDivisionError] * 2


@pytest.mark.parametrize("one", NAMELESS, ids=repr)
def test_an_object_without_a_name_is_left_out(one: Any) -> None:
    told: list[Any] = []
    copy = Mirror(on_unreadable=lambda found, why: told.append((found, why.cause)))
    copy.replace([obj("a", 1), one], "1")
    for kind in EventType:
        copy.apply(WatchEvent(kind, one))
    assert [key[1] for key in copy.objects] == ["a"]
    assert told == [(one, None)] * 4
    assert copy.resource_version == "1"


def test_the_view_of_objects_cannot_be_written() -> None:
    copy, _ = mirror()
    with pytest.raises(TypeError):
        copy.objects["x", "y"] = {}  # type: ignore[index]  # the point
    with pytest.raises(KeyError):
        copy.indexed("nothing", "x")


def test_keys_of_cluster_scoped_objects_have_no_namespace() -> None:
    assert key_of({"metadata": {"name": "n"}}) == ("", "n")


apps = st.sampled_from(["", "web", "db"])
moves = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["put", "delete"]), apps), max_size=20)


@given(moves)
def test_indexes_always_show_what_the_objects_say(todo: list[tuple[str, str, str]]) -> None:
    copy, _ = mirror()
    for number, (name, verb, app) in enumerate(todo, start=1):
        kind = EventType.DELETED if verb == "delete" else EventType.MODIFIED
        copy.apply(event(kind, obj(name, number, app=app)))
        for value in ("web", "db"):
            expected = [found for found in copy.objects.values() if by_app(found) == (value,)]
            assert sorted(map(key_of, copy.indexed("app", value))) == sorted(map(key_of, expected))


_LISTS = st.lists(
    st.builds(obj, st.sampled_from("abcd"), st.integers(1, 3), uid=st.sampled_from(("", "other"))), max_size=6
)


@given(_LISTS, _LISTS, st.integers(1, 3))
def test_a_list_in_parts_comes_to_the_same(
    before: list[dict[str, Any]], after: list[dict[str, Any]], size: int
) -> None:
    whole, _ = mirror()
    parts, heard = mirror()
    for listed in (before, after):
        whole.replace(listed, "9")
        heard.taken()
        keys = {key for at in range(0, len(listed), size) for key in parts.take(listed[at : at + size])}
        parts.keep_only(keys, "9")
        assert dict(parts.objects) == dict(whole.objects)
    assert parts.resource_version == "9"
    whole.replace([], "10")
    parts.keep_only((), "10")
    assert not parts.objects


def fed(cluster: Store) -> tuple[Mirror, Any]:
    """A mirror fed without an event loop, as a simulation does."""
    copy, _ = mirror()
    listed = cluster.list(PODS)
    copy.replace(listed.items, listed.resource_version)
    return copy, cluster.watch(PODS, resource_version=listed.resource_version)


def test_a_simulation_can_feed_a_mirror_from_a_store() -> None:
    cluster = store()
    cluster.create(PODS, pod("a", labels={"app": "web"}))
    copy, watch = fed(cluster)
    cluster.create(PODS, pod("b", labels={"app": "web"}))
    cluster.delete(PODS, "a")
    for change in watch.take():
        copy.apply(change)
    assert [found["metadata"]["name"] for found in copy.indexed("app", "web")] == ["b"]
    assert copy.get("b", "default") is cluster.get(PODS, "b")


def test_objects_without_versions_are_compared_as_a_whole() -> None:
    copy, heard = mirror()
    said = {"metadata": {"name": "a", "uid": "u", "labels": {}}, "status": {"phase": "Pending"}}
    for phase, words in (("Pending", ["+a"]), ("Pending", []), ("Running", ["~a"])):
        copy.replace([{**said, "status": {"phase": phase}}], "")
        assert heard.taken() == words
