"""Runners of migrations: which wait, and how one goes from step to step."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from koordpolicy.algorithms.descheduling.migration import (
    BoundPod,
    KeptRoom,
    MigratingPod,
    Migration,
    MigrationMode,
    MigrationSeen,
    next_step,
)
from koordpolicy.algorithms.descheduling.object_limiter import ObjectLimiter
from koordpolicy.algorithms.descheduling.throttle import (
    MigrationLimits,
    MigrationsUnderWay,
    ThrottledJob,
    ThrottledPod,
    ThrottledWorkload,
)
from koordpolicy.algorithms.descheduling.workload_limits import max_pods
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


def _throttle_filter(given: Given) -> Given:
    limits = given["limits"]
    pod = _throttled(given["pod"], given["pod"]["namespace"])
    workload = given.get("workload")
    others = [_throttled(one, pod.namespace) for one in given.get("pods", ())]
    jobs = [
        ThrottledJob(one["namespace"], one["pod"], one["phase"], one.get("passed", False))
        for one in given["jobs"]
    ]
    under_way = MigrationsUnderWay(others, jobs, given.get("arbitrating", False))
    answer = under_way.throttle(
        pod,
        MigrationLimits(
            limits.get("globally"),
            limits.get("per_node"),
            limits.get("per_namespace"),
            limits.get("max_migrating_per_workload"),
            limits.get("max_unavailable_per_workload"),
        ),
        ThrottledWorkload(workload["replicas"], frozenset(workload["owners"]))
        if workload and pod.owner
        else None,
    )
    numbers = {
        "max_migrating": answer.max_migrating,
        "max_unavailable": answer.max_unavailable,
        "migrating": answer.migrating,
        "unavailable": answer.unavailable,
    }
    return {
        "passed": not answer.refused_by,
        **({"failed_check": answer.refused_by} if answer.refused_by else {}),
        **{key: value for key, value in numbers.items() if value is not None},
    }


def _throttled(given: Given, namespace: str) -> ThrottledPod:
    return ThrottledPod(
        given.get("namespace", namespace),
        given["name"],
        given.get("node", ""),
        given.get("owner", ""),
        given.get("ready", True),
        given.get("terminating", False),
        given.get("phase", "Running"),
    )


def _migration_sequence(given: Given) -> Given:
    job = given["job"]
    migration = Migration(
        MigrationMode(job["mode"]),
        ttl=job["ttl"],
        paused=job.get("paused", False),
        phase=job.get("phase", ""),
        # One that runs has noted its pod.
        pod_uid=given["steps"][0].get("pod", {}).get("uid", "") if job.get("phase") == "Running" else "",
        has_reservation=job.get("reservation_ref", False),
    )
    after = []
    for seen in given["steps"]:
        if seen.get("unpaused"):
            migration = replace(migration, paused=False)
        step = next_step(migration, _seen(seen))
        migration = step.migration
        after.append(
            {
                "phase": migration.phase,
                "status": migration.status,
                "reason": migration.reason,
                "node": migration.node,
                "actions": [str(one) for one in step.actions],
                "conditions": {key: str(value) for key, value in migration.conditions.items()},
            }
        )
    return {"after_step": after}


def _seen(given: Given) -> MigrationSeen:
    pod, room = given.get("pod"), given.get("reservation")
    return MigrationSeen(
        given["age"],
        None if pod is None else MigratingPod(pod["uid"], pod.get("node", "")),
        None if room is None else _room(room),
        given.get("limited", False),
    )


def _room(given: Given) -> KeptRoom:
    bound = given.get("bound_pod")
    return KeptRoom(
        given["phase"],
        given.get("node", ""),
        given.get("scheduled", False),
        "" if given.get("unschedulable") else None,
        given.get("expired", False),
        None if bound is None else BoundPod(bound.get("ready", False), bound.get("gone", False)),
        given.get("for_pending_pod", False),
    )


def _object_limiter(given: Given) -> Given:
    config = given["config"]
    share = config.get("max_migrating")
    if config["type"] == "namespace":
        most = share if isinstance(share, int) else 0
    else:
        most = max_pods(config["replicas"], share)
    limiter = ObjectLimiter(config["duration"], config.get("burst", 1))
    limited: list[bool | None] = []
    for event in given["events"]:
        if event["op"] == "evict":
            limiter.evicted(event["key"], most, event["t"])
            limited.append(None)
        else:
            limited.append(limiter.limits(event["key"], most, event["t"]))
    return {"limited": limited}


RUNNERS: Mapping[str, Runner] = {
    "throttle_filter": Runner(_throttle_filter),
    "migration_sequence": Runner(_migration_sequence),
    "object_limiter": Runner(_object_limiter),
}
