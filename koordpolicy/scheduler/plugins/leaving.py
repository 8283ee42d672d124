"""Pods that were sent away from their nodes to make room, and are still there."""

from typing import Final

from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import CONDITION_DISRUPTION_TARGET, REASON_PREEMPTION
from koordpolicy.scheduler.plugins.base import Promises

_TRUE: Final = "True"


def is_leaving(pod: Pod, promises: Promises) -> bool:
    """Whether a pod goes for another one: by our own word, or, as after a restart, by what the cluster shows."""
    if promises.leaves(pod):
        return True
    found = pod.condition(CONDITION_DISRUPTION_TARGET)
    return (
        pod.terminating and found is not None and found.status == _TRUE and found.reason == REASON_PREEMPTION
    )
