"""Pods that are to be tried for the sake of room at a node: not when others have taken it, and never too late for other room."""

from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.decision import PodDecision
from tests.unit.scheduler.world import World, node, pod

SIZES = ("2", "3", "5")
HOUR = 3600 * NANOSECONDS


def decided(world: World) -> list[PodDecision]:
    found = []
    while (decision := world.scheduler.schedule_one()) is not None:
        found.append(decision)
        assert len(found) < 1000
    return found


def test_of_many_that_one_place_may_help_only_those_are_tried_that_have_room() -> None:
    world = World()
    for name in ("a", "b"):
        world.scheduler.set_node(node(name, {"allocatable": {"cpu": "4", "memory": "64Gi"}}))
        world.scheduler.set_pod(pod(f"on-{name}", {"request": {"cpu": "4"}, "node": name}))
    for number in range(20):
        world.scheduler.set_pod(pod(f"waits-{number}", {"request": {"cpu": "4"}}))
    assert [one.placed for one in decided(world)] == [False] * 20
    world.now += HOUR // 60  # back-offs have ended, and nobody is tried again whatever happened
    world.scheduler.remove_pod(("default", "on-a"))
    assert [one.node for one in decided(world)] == ["a"]
    world.scheduler.remove_pod(("default", "on-b"))
    assert [one.node for one in decided(world)] == ["b"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_who_rests_has_no_place_anywhere(seed: int) -> None:
    chance, world = Random(seed), World()
    running: dict[str, str] = {}
    for at in range(4):
        world.scheduler.set_node(node(f"n{at}", {"allocatable": {"cpu": str(chance.randint(4, 8))}}))
    for number in range(40):
        drawn = chance.random()
        if drawn < 0.5:
            world.scheduler.set_pod(pod(f"p{number}", {"request": {"cpu": chance.choice(SIZES)}}))
        elif drawn < 0.8 and running:
            name = chance.choice(sorted(running))
            del running[name]
            world.scheduler.remove_pod(("default", name))
        else:
            at, cpu = chance.randrange(4), chance.randint(4, 10)
            world.scheduler.set_node(node(f"n{at}", {"allocatable": {"cpu": str(cpu)}}))
        world.now += chance.choice((0, 1, 20)) * NANOSECONDS
        if chance.random() < 0.4:
            continue  # more happens before anybody is tried
        running |= {one.pod[1]: one.node for one in decided(world) if one.placed}
        waits = world.scheduler._waitlist
        for key, view in waits.pods.items():
            if waits.rests(key):
                event("somebody rests")
                assert not world.scheduler.framework.decide(view).placed
