"""The condition `Throttled`: what the API server answers with 429 alone, said by each process and told of all."""

import asyncio

from koordpolicy.kube.resources import EVENTS
from koordpolicy.model.policy_revision import revision_name
from tests.unit.runtime.replicas import Replica, World
from tests.unit.runtime.scenes import tree, until

ONE = "1" * 40


def test_what_the_api_server_puts_off_stands_as_a_condition_until_it_is_over() -> None:
    async def scene() -> None:
        world = World()
        calm = {"Ready": ("True", "Succeeded")}
        async with (
            Replica(world, "m1", leads=True).played() as leader,
            Replica(world, "s1", component="scheduler").played() as other,
        ):
            one = revision_name("fleet", ONE)
            for replica in (leader, other):
                replica.source.give(tree(1), ONE)
            await until(lambda: world.conditions(one) == calm and len(world.instances(one)) == 2)
            other.put_off = ("bind pods", "patch pods")
            late = {**calm, "Throttled": ("True", "TooManyRequests")}
            await until(lambda: world.conditions(one) == late)
            leader.put_off = ("patch nodes",)
            words = "waits: manager m1 (patch nodes); scheduler s1 (bind pods, patch pods)"
            await until(lambda: words in message_of(world, one, "Throttled"))
            leader.put_off = other.put_off = ()
            await until(lambda: world.conditions(one) == calm)
            assert all("putOff" not in entry for entry in world.entries(one))
            await leader.recorder.flush()
            told = [event["reason"] for event in world.store.list(EVENTS).items]
            assert told == ["PolicyRevisionActivated"]

    asyncio.run(scene())


def message_of(world: World, name: str, kind: str) -> str:
    """What one of its conditions says to people."""
    status = world.revisions()[name]["status"]
    return "".join(one["message"] for one in status["conditions"] if one["type"] == kind)
