"""What a scheduler as a process hears: which resources of the cluster, and each revision of policies."""

import logging
from collections.abc import Callable
from typing import Final

from koordpolicy.cluster.event_handlers import EVERY_RESOURCE, EventHandlers
from koordpolicy.cluster.watch import ClusterWatch
from koordpolicy.runtime.component import RunningComponent
from koordpolicy.runtime.policies.live import ActiveRevision
from koordpolicy.scheduler.scheduler import Scheduler

LOG: Final = logging.getLogger(__name__)

WATCHED: Final = EVERY_RESOURCE


def watch(component: RunningComponent, scheduler: Scheduler, wake: Callable[[], None]) -> ClusterWatch:
    """What keeps a scheduler up to date. `wake` is called after all that it hears."""
    handlers = EventHandlers(
        scheduler, unreadable=component.unreadable, wanted=WATCHED, after=lambda resource, change: wake()
    )
    return ClusterWatch(component, handlers)


def follow_policies(
    component: RunningComponent, scheduler: Scheduler, wake: Callable[[], None]
) -> Callable[[], None]:
    """Decide by the active revision from now on, until what is given back is called."""

    def changed(active: ActiveRevision) -> None:
        if active.graph.digest != scheduler.profile.digest:
            try:
                scheduler.replace_graph(active.graph)
            except Exception:
                LOG.exception("revision %s is not taken: internal error, please report", active.revision.name)
                component.process.metrics.add("koordpolicy_internal_errors_total", place="revision")
            wake()

    return component.live.subscribe(changed)
