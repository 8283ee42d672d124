"""What the lease of a process says of the source of its policies."""

import asyncio

from koordpolicy.kube.leases import LeaseTerms
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import LEASES, NAMESPACES
from koordpolicy.runtime.reports.presence import SOURCE_TROUBLE, Member, Presence
from tests.unit.runtime.scenes import Ticks, running, until


def test_a_lease_says_what_is_wrong_as_long_as_it_is() -> None:
    async def scene() -> None:
        store = Store(lambda: 1_800_000_000.0)
        store.create(NAMESPACES, {"metadata": {"name": "system"}})
        trouble = ["/policies: " + "x" * 5000]
        presence = Presence(
            MemoryCluster(store), "system", Member("manager", "m1"), "m1_1",
            jitter=lambda: 0.0, wall_ns=Ticks(), source_trouble=lambda: trouble[0],
            terms=LeaseTerms(duration=0.9, renew_deadline=0.6, retry=0.1),
        )  # fmt: skip

        def told() -> str | None:
            leases = store.list(LEASES).items
            return leases[0]["metadata"]["annotations"].get(SOURCE_TROUBLE) if leases else None

        async with running(presence.run()):
            await until(lambda: told() is not None)
            assert (told() or "").startswith("/policies: xxx")
            assert len(told() or "") <= 1024
            trouble[0] = ""
            await until(lambda: told() is None)
            assert store.list(LEASES).items[0]["metadata"]["annotations"]["koordpolicy.io/instance"] == "m1"

    asyncio.run(scene())
