"""Pods that wait for long, on a real API server: how often they are tried, what their conditions say, and that finding
out what would help costs the scheduler neither its health nor its lease.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.scheduler.sites import Scheduler, Site, profile
from tests.parts.apiserver import SYSTEM_NAMESPACE

UNSCHEDULABLE = 'koordpolicy_scheduler_attempts_total{result="unschedulable"}'
QUEUES = ("active", "backoff", "unschedulable", "gated")
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/koordpolicy-scheduler"

NODES = 1_000
PODS = 20
HEALTHY = 5.0
"""Seconds that a health check may take on a busy machine; its lease would be lost after 10."""


def taint(site: Site, name: str, *keys: str) -> None:
    taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
    site.do("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": taints or None}})


def test_a_storm_of_events_brings_no_storm_of_attempts_and_conditions_follow_it(site: Site) -> None:
    for name in ("a", "b", "c"):
        site.node(name)
        taint(site, name, "other")
    site.write("own.yaml", profile({"diagnosis": {"renewAfter": "2s"}}))
    with site.scheduler("s1", "--no-leader-elect") as scheduler:
        # It lacks CPU, too: no change of taints can help it.
        site.pod("large", "99")
        site.pod("small", "1")
        site.eventually(lambda: "taint" in site.refusal("large")[1], "taints are told of")
        site.eventually(lambda: "taint" in site.refusal("small")[1], "of both")
        before, began = scheduler.metric(UNSCHEDULABLE), time.monotonic()
        for number in range(200):
            taint(site, "a", f"key-{number % 2}")
        seconds = time.monotonic() - began
        attempts = scheduler.metric(UNSCHEDULABLE) - before
        # Two in each back-off of 1, 2, 4, 8 and then 10 s, for each of two pods, and what else they were tried for.
        periods = 4 + seconds / 10
        assert attempts <= 2 * 2 * periods + 4
        for name in ("a", "b", "c"):
            taint(site, name)
        site.eventually(lambda: "small" in site.where(), "there is room for the small one")
        site.eventually(lambda: "taint" not in site.refusal("large")[1], "no taints are told of any more")
        assert "3 Insufficient cpu" in site.refusal("large")[1]
        site.eventually(
            lambda: "no node is that large" in site.refusal("large")[1], "what would help is told"
        )
        waiting = [f'koordpolicy_scheduler_pending_pods{{queue="{one}"}}' for one in QUEUES]
        site.eventually(lambda: sum(map(scheduler.metric, waiting)) == 1, "the large one is counted")
        assert scheduler.metric("koordpolicy_scheduler_decision_seconds_count") >= 2


@pytest.mark.soak
def test_what_would_help_many_pods_costs_neither_health_nor_the_lease(site: Site) -> None:
    room = {"cpu": "10", "memory": "32Gi", "pods": "110"}

    def make(number: int) -> None:
        site.node(f"n{number}", room)
        site.measured(f"n{number}", str(1 + number % 7))

    with ThreadPoolExecutor(16) as some:
        list(some.map(make, range(NODES)))
    limits = {
        "usageThresholds": {"value": {"cpu": "2%", "memory": "95%"}},
        "nodeMetricExpiration": {"value": "1h"},  # each node reports once here
    }
    site.write("own.yaml", profile({"parameters": limits}))
    with site.scheduler("s1") as scheduler:
        site.eventually(lambda: scheduler.leads, "it leads")
        transitions = site.do("GET", LEASE)["spec"].get("leaseTransitions", 0)
        for number in range(PODS):
            site.pod(f"p-{number}", f"{100 + number}m")
        longest = slowest(scheduler, site, seconds=20.0)
        assert longest < HEALTHY
        site.eventually(
            lambda: any("usageThresholds.cpu" in site.refusal(f"p-{at}")[1] for at in range(PODS)),
            "somebody knows what would help",
        )
        assert scheduler.leads
        assert site.do("GET", LEASE)["spec"].get("leaseTransitions", 0) == transitions
        assert scheduler.metric("koordpolicy_scheduler_advice_evaluations_total") > 0


def slowest(scheduler: Scheduler, site: Site, seconds: float) -> float:
    """The longest that a health check took."""
    end, longest = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        began = time.monotonic()
        assert scheduler.read("/healthz")[0] == 200
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.1)
    return longest
