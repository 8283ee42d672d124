"""Events as a cluster takes them."""

import asyncio
import itertools

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.resources import CONFIG_MAPS, EVENTS
from tests.contract.clusters import NOW, World, config, contract


@contract
async def test_events_are_taken_and_counted(world: World) -> None:
    obj = await world.cluster.create(CONFIG_MAPS, config("one"), namespace=world.namespace)
    moments = itertools.count(NOW * 10**9, 10**9)
    recorder = Recorder(
        world.cluster,
        component="contract",
        instance="host-1",
        now_ns=lambda: next(moments),
        backoff=Backoff(jitter=lambda: 0.0, initial=0.01),
    )
    task = asyncio.create_task(recorder.run())
    async with asyncio.timeout(15):
        for _ in range(3):
            recorder.record(obj, "Compiled", "all is well", action="Compile")
            await recorder.flush()
        recorder.record(obj, "Rejected", "not so well", type="Warning")
        await recorder.flush()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert recorder.dropped == {"rate": 0, "queue": 0, "refused": 0, "unreachable": 0}
    listed = await world.cluster.list(
        EVENTS, namespace=world.namespace, field_selector=f"involvedObject.uid={obj['metadata']['uid']}"
    )
    assert sorted((e["type"], e["reason"], e["message"], e["count"]) for e in listed.items) == [
        ("Normal", "Compiled", "all is well", 3),
        ("Warning", "Rejected", "not so well", 1),
    ]
