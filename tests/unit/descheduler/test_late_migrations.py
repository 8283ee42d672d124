"""Migrations that nobody takes further, since the revision that made them decides no more: each ends when its time is over."""

import asyncio
from typing import Any

import pytest

from koordpolicy.descheduler.migration.driver import MigrationDriver, MigrationSite
from koordpolicy.descheduler.migration.job import MigrationJob
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.unreadable import UnreadableObjects
from koordpolicy.model.protocol import DESCHEDULING_PROFILE
from koordpolicy.runtime.metrics import Metrics
from tests.unit.descheduler.migrations import World, migrating

OFF: dict[str, Any] = {"enabled": False}
FULL: dict[str, Any] = {"limits": {"perNode": 1}}


class Driven(World):
    """Looked after by the whole driver, by whichever revision decides now."""

    def restart(self) -> None:
        super().restart()
        site = MigrationSite(
            self.cluster,
            self.objects,
            UnreadableObjects(lambda *found: None),
            lambda: self.graph,
            Recorder(
                self.cluster, component="test", instance="test", now_ns=self.now, backoff=Backoff(float)
            ),
            Metrics("descheduler"),
            lambda graph, error: None,
            self.now,
            lambda: self.seconds,
        )
        self.driver = MigrationDriver(site, lambda: None)
        self.pods = self.driver.pods
        self.jobs = self.driver.jobs
        self.mirrors.update(self.jobs.mirrors)
        self.watch()

    def decides(self, graph: RuleGraph) -> None:
        self.graph = graph

    async def _look(self) -> None:
        rules = self.driver.rules_of(self.graph)
        assert rules is not None
        await self.driver.look(rules, self.graph)


def standing(world: World) -> list[tuple[str, str, str]]:
    return [(job.phase, job.reason, job.message) for job in world.jobs.every()]


@pytest.mark.parametrize("begun", [False, True])
def test_one_of_a_dropped_revision_ends_when_its_time_is_over(begun: bool) -> None:
    world = Driven(migrating())
    assert isinstance(world.migrate("web-0"), MigrationJob)
    if begun:
        world.look(2)
        assert world.only().phase == "Running"
        assert world.rooms()
    world.decides(migrating(**OFF))
    world.seconds = 299
    world.look(2)
    assert not world.only().done, "whoever switches migrations on again finds it"
    world.seconds = 301
    world.look(2)
    expected = "Abort job caused by timeout: no migrations are carried out (`Migration.enabled`)"
    assert standing(world) == [("Failed", "Timeout", expected)]
    assert not world.rooms(), "no room is kept for it"
    assert "web-0" in world.names()
    world.seconds = 661
    world.look()
    assert not world.jobs.every(), "it is forgotten as policy says"


def test_one_that_is_never_let_begin_says_so_at_its_end() -> None:
    world = Driven(migrating(**FULL))
    world.job("first", "web-0", ttl="1h")
    world.look()
    world.job("second", "web-1", ttl="2m")
    world.seconds = 121
    world.look()
    assert ("Failed", "Timeout", "Abort job caused by timeout: arbitration has not let it begin") in standing(
        world
    )


def test_one_without_a_limit_of_time_waits_and_is_forgotten_at_last() -> None:
    world = Driven(migrating(**OFF))
    world.job("by-user", "web-0")
    world.seconds = 1799
    world.look()
    assert standing(world) == [("", "", "")]
    world.seconds = 1861
    world.look()
    assert not world.jobs.every()


def test_one_whose_policy_cannot_say_anything_ends_too() -> None:
    world = Driven(migrating())
    assert isinstance(world.migrate("web-0"), MigrationJob)
    world.seconds = 301
    asyncio.run(world.driver.end_late("policy cannot say how pods are migrated", begun=True))
    assert standing(world)[0][:2] == ("Failed", "Timeout")


def test_the_conditions_of_a_profile_that_is_gone_are_those_that_policy_names() -> None:
    """`koord-descheduler` lets no pod go whose annotation forbids it."""
    world = Driven(migrating())
    cost = {"scheduling.koordinator.sh/eviction-cost": "2147483647"}
    world.pod("dear", "full", annotations=cost)
    world.job("by-a-dropped-profile", "dear")
    job = world.only()
    asyncio.run(world.jobs.patch(job, {"metadata": {"annotations": {DESCHEDULING_PROFILE: "that-is-gone"}}}))
    world.look()
    assert (world.only().phase, world.only().reason) == ("Failed", "ForbiddenMigratePod")
