"""Pods whose scheduling hint prefers nodes: the first that no filter refuses, or whichever scores say."""

import json
import random
from typing import Any

import pytest

from koordpolicy.model.protocol import DEPRECATED_SCHEDULING_HINT, SCHEDULING_HINT
from tests.unit.scheduler.world import World, node, pod, policies


def world(cpus: dict[str, int], **profile: Any) -> World:
    made = World(policies(profile)) if profile else World()
    for name, amount in cpus.items():
        made.scheduler.set_node(node(name, {"allocatable": {"cpu": str(amount), "memory": "99Gi"}}))
    return made


def placed(made: World, hint: object, key: str = SCHEDULING_HINT, **said: Any) -> str:
    made.scheduler.set_pod(pod("p", {"annotations": {key: json.dumps(hint)}, **said}))
    found = made.scheduler.schedule_one()
    assert found is not None
    return found.node or found.message


@pytest.mark.parametrize("key", [SCHEDULING_HINT, DEPRECATED_SCHEDULING_HINT])
def test_the_first_that_fits_is_taken_whatever_scores_say(key: str) -> None:
    made = world({"a": 90, "b": 2, "c": 3, "d": 0})
    assert placed(made, {"preferredNodeNames": ["gone", "d", "b", "c"]}, key) == "b"


def test_where_none_fits_scores_decide() -> None:
    made = world({"a": 90, "b": 0})
    assert placed(made, {"preferredNodeNames": ["gone", "b"]}) == "a"


def test_those_that_the_hint_leaves_come_first() -> None:
    made = world({"a": 9, "b": 9, "c": 9})
    assert placed(made, {"nodeNames": ["c"], "preferredNodeNames": ["b", "a"]}) == "c"
    made = world({"a": 9, "b": 2, "c": 9})
    assert placed(made, {"nodeNames": ["c", "b"], "preferredNodeNames": ["a", "b", "c"]}) == "b"


def test_policy_says_how_many_are_tried() -> None:
    hint = {"preferredNodeNames": ["c", "b"]}
    assert placed(world({"a": 90, "b": 2, "c": 0}, preferredNodes=2), hint) == "b"
    assert placed(world({"a": 90, "b": 2, "c": 0}, preferredNodes=1), hint) == "a"
    assert placed(world({"a": 90, "b": 2, "c": 1}, preferredNodes=0), hint) == "a"


def test_a_hint_that_cannot_be_read_is_told() -> None:
    assert "preferredNodeNames" in placed(world({"a": 9}), {"preferredNodeNames": "a"})


@pytest.mark.parametrize("seed", range(20))
def test_as_a_brute_force_has_it(seed: int) -> None:
    chance = random.Random(seed)
    cpus = {f"n{at}": chance.randint(0, 3) for at in range(6)}
    preferred = chance.choices([*cpus, "gone"], k=chance.randint(0, 5))
    only = chance.sample([*cpus], chance.randint(1, 6)) if chance.random() < 0.4 else []
    most = chance.randint(0, 5)
    fits = {name for name, amount in cpus.items() if amount >= 2 and (not only or name in only)}
    left = [name for name in dict.fromkeys(preferred) if not only or name in only][:most]
    found = placed(
        world(cpus, preferredNodes=most),
        {"nodeNames": only, "preferredNodeNames": preferred},
        request={"cpu": "2"},
    )
    wanted = next((name for name in left if name in fits), None)
    if wanted is not None:
        assert found == wanted
    elif fits:
        assert found in fits
    else:
        assert "0/6 nodes" in found
