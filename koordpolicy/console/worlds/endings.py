"""How a pod of a live cluster ends, as its status tells."""

from collections.abc import Collection
from typing import Final

from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import CONDITION_DISRUPTION_TARGET, PHASE_FAILED, PHASE_SUCCEEDED
from koordpolicy.model.reading import mapping, text

GONE: Final = "gone"
"""Nobody says why, as where somebody deleted the pod."""

_DISRUPTIONS: Final = {
    "PreemptionByScheduler": "preempted",
    "EvictionByEvictionAPI": "displaced",
    "DeletionByTaintManager": "lost",
    "DeletionByPodGC": "lost",
    "TerminationByKubelet": "evicted",
}
"""Reasons of the condition `DisruptionTarget`, as Kubernetes documents them, in the words of `PodSpan.outcome`."""


def ending_of(pod: Pod, moved: Collection[str]) -> str:
    """How it has ended, or is about to; empty where it goes on. `moved` are the pods that the descheduler moves."""
    for condition in pod.conditions:
        if condition.type == CONDITION_DISRUPTION_TARGET and condition.status == "True":
            found = _DISRUPTIONS.get(condition.reason, GONE)
            return "moved" if found == "displaced" and "/".join(pod.key) in moved else found
    if pod.phase == PHASE_SUCCEEDED:
        return "finished"
    if pod.phase == PHASE_FAILED:
        return "evicted" if text(mapping(pod.raw, "status"), "reason", "status") == "Evicted" else "failed"
    return ""
