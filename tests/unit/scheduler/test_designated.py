"""CPUs and devices that somebody else has chosen for a pod, as its scheduling hint says: it gets these, or does not fit."""

import json
from typing import Any

import pytest

from koordpolicy.model.protocol import (
    DEPRECATED_SCHEDULING_HINT,
    DEVICE_ALLOCATED,
    RESOURCE_STATUS,
    SCHEDULING_HINT,
)
from tests.unit.scheduler.test_cpus import SINGLE, own, reasons
from tests.unit.scheduler.test_devices import GPU, RATIO
from tests.unit.scheduler.test_zones_of_devices import Pool
from tests.unit.scheduler.world import pod

KEYS = (SCHEDULING_HINT, DEPRECATED_SCHEDULING_HINT)


def chosen(
    wanted: dict[str, Any], cpus: str = "", cards: tuple[int, ...] = (), key: str = SCHEDULING_HINT
) -> Any:
    """A pod for which these were chosen."""
    says: dict[str, Any] = {}
    annotations = dict(wanted.get("annotations", {}))
    if cpus:
        says["NodeNUMAResource"] = {}
        annotations[RESOURCE_STATUS] = json.dumps({"cpuset": cpus})
    if cards:
        says["DeviceShare"] = {}
        shares = [{"minor": card, "resources": {RATIO: "100"}} for card in cards]
        annotations[DEVICE_ALLOCATED] = json.dumps({"gpu": shares})
    annotations[key] = json.dumps({"extensions": says})
    return {**wanted, "annotations": annotations}


@pytest.mark.parametrize("key", KEYS)
def test_a_pod_gets_what_was_chosen_for_it(key: str) -> None:
    world = Pool()
    assert world.place("a", chosen(own(4, **{GPU: "200"}), "4-7", (2, 5), key)).placed
    assert (world.cpus("a"), world.cards("a")) == ("4-7", [2, 5])
    assert world.place("shared", chosen({"request": {"cpu": "1", GPU: "30"}}, cards=(6,))).placed
    assert world.cards("shared") == [6]


def test_what_is_taken_is_not_given_again() -> None:
    world = Pool()
    assert world.place("a", own(4, **{GPU: "400"})).placed
    refused = world.scheduler.framework.decide(pod("cpus", chosen(own(4), "2-5")))
    assert [(one.reason, one.resolvable) for one in refused.refusals] == [
        ("not enough cpus available to satisfy request", True)
    ]
    refused = world.scheduler.framework.decide(pod("cards", chosen(own(2, **{GPU: "200"}), cards=(3, 4))))
    assert reasons(refused)[0] in ("Insufficient GPU Devices", "Insufficient gpu devices")
    world.scheduler.remove_pod(("default", "a"))
    assert world.place("cpus", chosen(own(4), "2-5")).placed
    assert world.cpus("cpus") == "2-5"


def test_what_was_chosen_is_what_is_asked_for() -> None:
    world = Pool()
    many = world.scheduler.framework.decide(pod("many", chosen(own(2), "0-7")))
    assert reasons(many) == ["the CPUs chosen for the pod are not as many as it asks for"]
    others = world.scheduler.framework.decide(pod("none", chosen(own(2, "LS", numa=SINGLE), "0-1")))
    assert reasons(others) == ["the CPUs chosen for the pod are not as many as it asks for"]


def test_an_annotation_of_an_earlier_attempt_chooses_nothing() -> None:
    world = Pool()
    wanted = chosen(own(4, **{GPU: "100"}), "4-7", (5,))
    del wanted["annotations"][SCHEDULING_HINT]
    assert world.place("a", wanted).placed
    assert (world.cpus("a"), world.cards("a")) == ("0-3", [0])


@pytest.mark.parametrize("hint", ["[]", "{", '{"extensions": 1}'])
def test_a_hint_that_cannot_be_read_is_a_reason(hint: str) -> None:
    world = Pool()
    wanted = own(2, **{GPU: "100"})
    wanted["annotations"][SCHEDULING_HINT] = hint
    decision = world.place("a", wanted)
    assert not decision.placed
    assert "scheduling-hint" in json.dumps([decision.problem, *reasons(decision)], default=str)


def test_a_hint_leaves_the_nodes_that_it_names() -> None:
    world = Pool()
    elsewhere = own(2)
    elsewhere["annotations"][SCHEDULING_HINT] = json.dumps({"nodeNames": ["other"]})
    decision = world.place("a", elsewhere)
    assert [(one.reason, one.resolvable) for one in decision.refusals] == [
        ("node(s) are not named by the pod's scheduling hint", False)
    ]
    here = own(2)
    here["annotations"][SCHEDULING_HINT] = json.dumps({"nodeNames": ["other", "n0"]})
    assert world.place("b", here).node == "n0"
