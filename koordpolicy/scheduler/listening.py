"""A scheduler that is kept up to date by a cluster: one watch for each resource that it hears of."""

import logging
from collections.abc import Callable
from typing import Final

from koordpolicy.kube import Object
from koordpolicy.kube.resources import PODS
from koordpolicy.runtime.collector import hold_back, keep_what_is_there, look_again
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.live import ActiveRevision
from koordpolicy.runtime.process import Tasks
from koordpolicy.runtime.watching import Watching
from koordpolicy.scheduler.feed import Feed
from koordpolicy.scheduler.scheduler import Scheduler

LOG: Final = logging.getLogger(__name__)

_RUNNING_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Listening:
    """What a scheduler hears, of the cluster and of policies. `wake` is called after all that it heard."""

    def __init__(self, component: RunningComponent, scheduler: Scheduler, wake: Callable[[], None]) -> None:
        self.scheduler = scheduler
        self._component = component
        self._wake = wake
        self._feed = Feed(scheduler, wake=wake, unreadable=component.unreadable)
        backoff = component.backoff(longest=15.0)
        self._watching = tuple(
            Watching(
                component.cluster,
                resource,
                mirror,
                backoff,
                field_selector=_RUNNING_PODS if resource is PODS else "",
                on_change=self._heard,
            )
            for resource, mirror in self._feed.mirrors.items()
        )

    def start(self, tasks: Tasks) -> None:
        """Listen to the cluster; the process counts as ready once everything was heard."""
        hold_back()
        for watching in self._watching:
            tasks.start(f"watch {watching.resource}", watching.run())
        tasks.start("ready", self._ready())

    async def everything(self) -> None:
        """Wait until everything there is was heard of once."""
        for watching in self._watching:
            await watching.settled.wait()

    def follow_policies(self) -> Callable[[], None]:
        """Decide by the active revision from now on, until what is given back is called."""
        return self._component.live.subscribe(self._changed)

    def pod(self, namespace: str, name: str) -> Object | None:
        """A pod as last heard of; None when there is none that is not over."""
        return self._feed.mirrors[PODS].get(name, namespace)

    def _heard(self) -> None:
        """A list has come in, or cannot be had: while one waits and tries again, there is garbage and time."""
        if any(watching.trouble is not None for watching in self._watching):
            look_again()

    async def _ready(self) -> None:
        await self.everything()
        keep_what_is_there()
        self._component.process.readiness.reached("cluster")

    def _changed(self, active: ActiveRevision) -> None:
        if active.graph.digest != self.scheduler.profile.digest:
            try:
                self.scheduler.replace_graph(active.graph)
            except Exception:
                LOG.exception("revision %s is not taken: internal error, please report", active.revision.name)
                self._component.process.metrics.add("koordpolicy_internal_errors_total", place="revision")
            self._wake()
