"""Pods that are stopped on the node itself: asked to end first, and ended when the time is over that they have for it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.agent.node_pods import NodePod
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.signals import GroupSignals
from koordpolicy.model.time import NANOSECONDS

_LONGEST: Final = 600 * NANOSECONDS
"""Pods may ask for any time: on a node that runs short nobody waits longer."""
_MOST: Final = 10_000


@dataclass(slots=True)
class PodStops:
    """Who has been asked to end, and until when. Times are nanoseconds of a monotonic clock."""

    signals: GroupSignals
    _until: dict[str, int] = field(default_factory=dict)
    """By group."""

    def begin(self, pod: NodePod, now: int) -> str:
        """Ask the containers of a pod to end. Why it is not done, in a phrase; empty where it is."""
        asked, problem = 0, "none of its containers runs"
        for group in pod.containers.values():
            if group in self._until:
                asked += 1
                continue
            try:
                count = self.signals.end(group, at_once=False)
            except KernelFileError as error:
                problem = error.problem
                continue
            if count and len(self._until) < _MOST:
                self._until[group] = now + min(pod.grace * NANOSECONDS, _LONGEST)
                asked += 1
        return "" if asked else problem

    def turn(self, now: int) -> Iterable[str]:
        """End what was asked for long enough; the groups that were ended, and why others could not be, in phrases."""
        told = []
        for group, until in list(self._until.items()):
            if now < until:
                continue
            del self._until[group]
            try:
                if count := self.signals.end(group, at_once=True):
                    told.append(
                        f"{count} processes of {group} were ended: they did not end when they were asked"
                    )
            except NoSuchFile:
                continue  # it has ended in time
            except KernelFileError as error:
                told.append(f"{group} is not stopped: {error.problem}")
        return told
