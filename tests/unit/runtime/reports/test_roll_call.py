"""Who counts as gone."""

import asyncio

from koordpolicy.kube.leases import LeaseTerms
from koordpolicy.runtime.reports.presence import Member, Presence, RollCall
from tests.unit.runtime.replicas import World
from tests.unit.runtime.scenes import Ticks, running, until


def test_nobody_counts_as_gone_after_a_time_in_which_none_could_be_seen() -> None:
    async def scene() -> None:
        world = World()
        member = Member("scheduler", "s1")
        now = 0.0
        terms = LeaseTerms(40.0, 20.0, 10.0)
        roll = RollCall(world.cluster, "system", clock=lambda: now, terms=terms)

        async def gone_at(moment: float) -> bool:
            nonlocal now
            now = moment
            return member in await roll.absent([])

        presence = Presence(
            world.cluster, "system", member, "s1_1", jitter=lambda: 0.0, wall_ns=Ticks(), terms=terms
        )
        async with running(presence.run()):
            await until(lambda: world.leases() == {member.lease})
        assert [await gone_at(moment) for moment in (0.0, 10.0, 20.0)] == [False, False, False]
        # No answer for 48 s: the lease was seen renewed 68 s ago, but nobody could renew it.
        assert [await gone_at(moment) for moment in (68.0, 80.0, 95.0)] == [False, False, False]
        assert await gone_at(109.0), "it has had its time"

    asyncio.run(scene())
