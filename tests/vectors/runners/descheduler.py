"""Runners of a descheduler's arithmetic: how long a node is over, which node is first, how many pods may go, which never."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.descheduling.anomaly import AnomalyCondition, Detectors
from koordpolicy.algorithms.descheduling.evictability import EvictabilityLimits, PodTraits, forbidden_by
from koordpolicy.algorithms.descheduling.eviction_limiter import EvictionLimiter, EvictionLimits
from koordpolicy.algorithms.descheduling.node_score import usage_score
from koordpolicy.algorithms.descheduling.workload_limits import max_pods, replicas_can_move
from koordpolicy.model.eviction_cost import FORBIDDEN, read_eviction_cost
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

_NODE: Final = "node"
_CRITICAL: Final = 2_000_000_000


def _anomaly(given: Given) -> Given:
    config = given["config"]
    condition = None
    if config is not None:
        condition = AnomalyCondition(
            config["consecutive_abnormalities"],
            config["consecutive_normalities"],
            config["timeout"],
            config["cache_timeout"],
        )
    detectors = Detectors()
    return {"results": [_marked(detectors, condition, one["event"], one["t"]) for one in given["events"]]}


def _marked(detectors: Detectors, condition: AnomalyCondition | None, event: str, now: float) -> str:
    match event:
        case "high":
            return "abnormal" if detectors.mark_over(_NODE, condition, now) else "waiting"
        case "evicted":
            return "anomaly" if detectors.mark_normal(_NODE, now) else "ok"
        case "low" | "recovered":
            return "reset" if detectors.reset(_NODE, now) else "none"
        case "appropriate":
            return "untouched"
        case _:
            raise AssertionError(event)


def _node_score(given: Given) -> Given:
    return {"score": usage_score(given["usage"], given["allocatable"], given["weights"])}


def _max_unavailable(given: Given) -> Given:
    return {"result": max_pods(given["replicas"], given.get("value"))}


def _expected_replicas(given: Given) -> Given:
    replicas = given["replicas"]
    migrating = max_pods(replicas, given.get("max_migrating_per_workload"))
    unavailable = max_pods(replicas, given.get("max_unavailable_per_workload"))
    return {"passed": bool(given.get("skip_check")) or replicas_can_move(replicas, migrating, unavailable)}


def _eviction_cost(given: Given) -> Given:
    cost = read_eviction_cost(given.get("annotation"))
    return {"cost": cost, "may_migrate": cost != FORBIDDEN}


def _eviction_limiter(given: Given) -> Given:
    limits = given.get("limits", {})
    limiter = EvictionLimiter(
        EvictionLimits(limits.get("node"), limits.get("namespace"), limits.get("total"))
    )
    return {"allowed": [_asked(limiter, one) for one in given["requests"]]}


def _asked(limiter: EvictionLimiter, request: Given | str) -> bool | None:
    if request == "reset":
        limiter.reset()
        return None
    assert isinstance(request, Mapping)
    node, namespace = request.get("node", ""), request["namespace"]
    if limiter.refusal(node, namespace) is not None:
        return False
    limiter.charge(node, namespace)
    return True


def _evictability(given: Given) -> Given:
    pod, args = given["pod"], given.get("args", {})
    selector = args.get("labelSelector") or {}
    traits = PodTraits(
        tuple(pod.get("owner_kinds", ())),
        mirror=pod.get("mirror", False),
        config_source=pod.get("config_source"),
        terminating=pod.get("terminating", False),
        phase=pod.get("phase", "Running"),
        priority=pod.get("priority"),
        volumes=frozenset(pod.get("volumes", ())),
        labels_match=dict(selector).items() <= dict(pod.get("labels", {})).items(),
    )
    every_priority = args.get("evictSystemCriticalPods", False)
    failed = forbidden_by(
        traits,
        EvictabilityLimits(
            critical_priority=None if every_priority else _CRITICAL,
            priority_threshold=None if every_priority else args.get("priorityThreshold"),
            bare_pods=args.get("evictAllBarePods", False),
            failed_bare_pods=args.get("evictFailedBarePods", False),
            local_storage=args.get("evictLocalStoragePods", False),
            persistent_volumes=not args.get("ignorePvcPods", False),
        ),
    )
    return {"evictable": not failed or pod.get("evict_annotation", False), "failed_checks": failed}


RUNNERS: Mapping[str, Runner] = {
    "anomaly_sequence": Runner(_anomaly),
    "node_score": Runner(_node_score),
    "max_unavailable": Runner(_max_unavailable),
    "expected_replicas": Runner(_expected_replicas),
    "eviction_cost": Runner(_eviction_cost),
    "eviction_limiter": Runner(_eviction_limiter),
    "evictability": Runner(_evictability),
}
