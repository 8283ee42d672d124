"""Objects that are known without asking, and who follows them."""

from collections.abc import Callable
from typing import Any

import pytest

from koordpolicy.kube.known import FixedObjects, KnownObjects
from koordpolicy.kube.memory import Store
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.port import EventType, MergePatch, WatchEvent
from koordpolicy.kube.resources import NAMESPACES, PRIORITY_CLASSES, Resource
from koordpolicy.manager.serving import MirroredObjects

OBJECT = {"metadata": {"name": "band"}, "value": 1}


class Following:
    """Objects, and how a new one comes, another change, and the end."""

    def __init__(self, objects: KnownObjects, write: Callable[[str, dict[str, Any]], None]) -> None:
        self.objects = objects
        self.write = write


def stored() -> Following:
    store = Store(lambda: 0)

    def write(what: str, obj: dict[str, Any]) -> None:
        if what == "create":
            store.create(PRIORITY_CLASSES, obj)
        elif what == "patch":
            store.patch(PRIORITY_CLASSES, "band", MergePatch(obj))
        else:
            store.delete(PRIORITY_CLASSES, "band")

    return Following(store, write)


def mirrored() -> Following:
    mirrors: dict[Resource, Mirror] = {PRIORITY_CLASSES: Mirror(), NAMESPACES: Mirror()}
    types = {"create": EventType.ADDED, "patch": EventType.MODIFIED, "delete": EventType.DELETED}

    def write(what: str, obj: dict[str, Any]) -> None:
        mirrors[PRIORITY_CLASSES].apply(WatchEvent(types[what], obj))

    return Following(MirroredObjects(mirrors), write)


@pytest.mark.parametrize("make", [stored, mirrored])
def test_who_follows_hears_of_what_is_there_and_of_every_change(make: Callable[[], Following]) -> None:
    following = make()
    following.write("create", OBJECT)
    heard: list[ObjectChange] = []
    following.objects.follow(PRIORITY_CLASSES, heard.append)
    there = [one for one in heard if one.key == ("", "band")]
    assert [(one.old, one.new is None) for one in there] == [(None, False)]
    heard.clear()
    following.write("patch", {**OBJECT, "description": "new"})
    following.write("delete", OBJECT)
    assert [(one.key[1], one.old is None, one.new is None) for one in heard] == [
        ("band", False, False),
        ("band", False, True),
    ]
    changed = heard[0].new
    assert changed is not None
    assert changed is heard[1].old
    assert changed["description"] == "new"


def test_a_handler_that_fails_over_an_object_does_not_stop_the_others() -> None:
    following = mirrored()
    following.write("create", {"metadata": {"name": "bad"}})
    following.write("create", OBJECT)
    heard: list[str] = []

    def handler(change: ObjectChange) -> None:
        if change.key[1] == "bad":
            raise ValueError
        heard.append(change.key[1])

    following.objects.follow(PRIORITY_CLASSES, handler)
    assert heard == ["band"]


def test_what_does_not_change_is_told_of_once() -> None:
    heard: list[ObjectChange] = []
    FixedObjects({PRIORITY_CLASSES: [OBJECT]}).follow(PRIORITY_CLASSES, heard.append)
    assert heard == [ObjectChange(("", "band"), None, OBJECT)]
