"""The node agent: suppression and the kernel's numbers."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.algorithms.container_resources import (
    normalized_quota,
    quota_of,
)
from koordpolicy.algorithms.cpuset import pick_cpus, transition
from koordpolicy.algorithms.suppress import CpusetLimits, QuotaLimits, plan_cpuset, quota_write
from koordpolicy.model.topology import Processor
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


def suppress_pick(given: Given) -> Given:
    return {"picked_in_order": list(pick_cpus(_processors(given), given["count"]))}


def suppress_cpuset(given: Given) -> Given:
    processors = _processors(given)
    held = {
        qos: {cpu for pod in given.get("cpuset_pods", ()) if pod["qos"] == qos for cpu in pod["cpus"]}
        for qos in ("LSR", "LSE")
    }
    excluded = held["LSE"] | set(given.get("node_reserved_cpus", ()))
    current = set(given["old_cpuset"])
    plan = plan_cpuset(
        given["target"],
        processors,
        current,
        excluded=excluded,
        borrowed=held["LSR"],
        limits=CpusetLimits(minimum_cpus=2, growth=0.1),
    )
    writes = transition(
        plan.picked,
        current,
        {one.cpu for one in processors} - excluded,
        kubelet_owns_parents=given.get("kubelet_policy") == "static",
    )
    return {
        "count": plan.count,
        "from_lsr": plan.from_borrowed,
        "from_ls": plan.from_shared,
        "picked_in_order": list(plan.picked),
        "writes": [{"order": str(write.reach), "cpus": sorted(write.cpus)} for write in writes] or None,
    }


def _processors(given: Given) -> list[Processor]:
    return [Processor(*numbers) for numbers in given["processors"]]


def suppress_quota(given: Given) -> Given:
    limits = QuotaLimits(period=100_000, minimum=2000, growth=0.1, negligible=0.01)
    return {"write": quota_write(given["target"], given["current_quota"], given["cpu_capacity"], limits)}


def cpu_normalization(given: Given) -> Given:
    limited = quota_of(given["limit"])
    applies = given["qos"] == "LS" or (given["qos"] == "" and not given.get("scheduler_cpuset"))
    return {"quota": normalized_quota(limited, given["ratio"]) if applies and limited > 0 else None}


RUNNERS: Mapping[tuple[str, str], Runner] = {
    ("node-agent", "suppress_pick"): Runner(suppress_pick),
    ("node-agent", "suppress_cpuset"): Runner(suppress_cpuset),
    ("node-agent", "suppress_quota"): Runner(suppress_quota),
    ("node-agent", "cpu_normalization"): Runner(cpu_normalization),
}
