"""Processes that follow policies and report, on a cluster in memory that may be out of reach."""

import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from koordpolicy.kube import NotFound, Resource, Unreachable
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.events import Recorder
from koordpolicy.kube.frozen import thaw
from koordpolicy.kube.leases import LeaseTerms
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import LEASES, NAMESPACES, POLICY_REVISIONS
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.runtime.reports.presence import Presence, RollCall
from koordpolicy.runtime.reports.reporter import Reporter
from koordpolicy.runtime.reports.revision_objects import RevisionObjects, Who
from tests.unit.runtime.scenes import Ticks, live_of, running

BACKOFF = Backoff(lambda: 0.0, initial=0.01, longest=0.05)
TERMS = LeaseTerms(duration=0.9, renew_deadline=0.6, retry=0.1)
"""A process that renewed nothing for most of a second is gone."""

_numbers = itertools.count()


class World:
    """A cluster in memory, which may be out of reach."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.store = Store(lambda: self.now)
        self.store.create(NAMESPACES, {"metadata": {"name": "system"}})
        self.away = False
        self.cluster = MemoryCluster(self.store, before_request=self._before)

    async def _before(self, verb: str, resource: Resource) -> None:
        if self.away:
            raise Unreachable("connection refused")

    def revisions(self) -> dict[str, dict[str, Any]]:
        return {obj["metadata"]["name"]: thaw(obj) for obj in self.store.list(POLICY_REVISIONS).items}

    def instances(self, name: str) -> dict[str, str]:
        """State of each instance that has an entry."""
        try:
            obj = self.store.get(POLICY_REVISIONS, name)
        except NotFound:
            return {}
        return {one["name"]: one["state"] for one in (obj.get("status") or {}).get("instances") or ()}

    def entries(self, name: str) -> list[dict[str, Any]]:
        """The entries of instances."""
        return list((self.revisions().get(name, {}).get("status") or {}).get("instances") or ())

    def leases(self) -> set[str]:
        """The names of the leases of processes."""
        return {obj["metadata"]["name"] for obj in self.store.list(LEASES).items}

    def message(self, name: str) -> str:
        """What its condition `Ready` says to people."""
        status = self.revisions().get(name, {}).get("status") or {}
        return next((one["message"] for one in status.get("conditions", ()) if one["type"] == "Ready"), "")

    def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        status = self.revisions().get(name, {}).get("status") or {}
        return {one["type"]: (one["status"], one["reason"]) for one in status.get("conditions", ())}


class Replica:
    """One process that follows a source and reports."""

    def __init__(
        self,
        world: World,
        name: str,
        *,
        leads: bool = False,
        gate: Any = None,
        component: str = "manager",
        objects: RevisionObjects | None = None,
    ) -> None:
        self.put_off: tuple[str, ...] = ()
        self.world = world
        self.source = FixedSource("memory")
        self.metrics = Metrics(component)
        self.live: LivePolicies = live_of(self.source, self.metrics, gate=gate)
        self.leads = leads
        self.recorder = Recorder(
            world.cluster,
            component=f"koordpolicy-{component}",
            instance=name,
            now_ns=Ticks(),
            backoff=BACKOFF,
        )
        who = Who(component, name)
        self.presence = Presence(
            world.cluster,
            "system",
            who.member,
            f"{name}_{next(_numbers)}",
            jitter=lambda: 0.0,
            wall_ns=Ticks(),
            terms=TERMS,
        )
        self.reporter = Reporter(
            objects or RevisionObjects(world.cluster, self.metrics, Ticks()),
            self.live,
            who,
            BACKOFF,
            RollCall(world.cluster, "system", clock=time.monotonic, terms=TERMS),
            leads=lambda: self.leads,
            recorder=self.recorder,
            look=0.05,
        )
        self.reporter.put_off = lambda: self.put_off

    @property
    def failures(self) -> float:
        """Reports that could not be written."""
        return (
            self.metrics.value(
                "koordpolicy_policy_status_writes_total", kind="PolicyRevision", result="failed"
            )
            or 0.0
        )

    @asynccontextmanager
    async def played(self) -> AsyncIterator["Replica"]:
        """While this lasts; at its end the process is killed."""
        async with (
            running(self.live.run()),
            running(self.presence.run()),
            running(self.reporter.run()),
            running(self.recorder.run()),
        ):
            yield self
