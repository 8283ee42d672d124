"""Nobody goes for a pod that would still be refused: once its victims are gone, it has its node.

Random clusters, in which measurements grow old and load is near its limits.
"""

from random import Random
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.reading import read_amounts
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler import Scheduler
from tests.differential_scheduling.case import Case, Object, key_of
from tests.differential_scheduling.drawing import draw
from tests.differential_scheduling.ours import hear, hear_no_more
from tests.unit.scheduler.world import policies

NOW = 1_800_000_000 * NANOSECONDS
AHEAD = 30
POLICIES = (
    policies(),
    policies({"parameters": {"usageThresholds": {"value": {"cpu": "40%", "memory": "50%"}}}}),
    policies({"filters": [{"name": "few", "require": {"cel": "size(node.pods) < 3"}}]}),
)


class Cluster:
    """A scheduler, a clock, and what it has heard."""

    def __init__(self, case: Case, which: int, chance: Random) -> None:
        self.now = NOW
        self.scheduler = Scheduler(POLICIES[which], lambda: self.now)
        self.pods = {key_of(one): one for one in case.objects if one["kind"] == "Pod"}
        for obj in case.objects:
            hear(self.scheduler, obj)
        for obj in case.objects:
            if obj["kind"] == "Node" and chance.random() < 0.9:
                self.scheduler.set_metric(measured(obj, chance))

    def go(self, key: tuple[str, str]) -> None:
        """A pod ends: first it is on its way, then it is gone."""
        obj = self.pods[key]
        leaving: dict[str, Any] = {**obj["metadata"], "deletionTimestamp": "2027-01-15T08:00:00Z"}
        hear(self.scheduler, {**obj, "metadata": leaving})
        hear_no_more(self.scheduler, obj)


def measured(node: Object, chance: Random) -> NodeMetric:
    age = chance.choice((0, 120, 149, 151, 160, 179, 181))
    share = chance.choice((0.05, 0.2, 0.35, 0.6))
    room = read_amounts(node["status"]["allocatable"])
    usage = {name: int(room.get(name, 0) * share) for name in ("cpu", "memory")}
    return NodeMetric(node["metadata"]["name"], updated_at=NOW - age * NANOSECONDS, node_usage=usage)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, len(POLICIES) - 1), st.sampled_from((0, 15, AHEAD)))
def test_a_pod_gets_its_node_once_its_victims_are_gone(seed: int, which: int, seconds: int) -> None:
    case = draw(seed, 0, 6)
    for pod in case.pods:
        cluster = Cluster(case, which, Random(seed))
        hear(cluster.scheduler, pod)
        decision = cluster.scheduler.schedule_one()
        assert decision is not None
        if decision.preemption is None:
            continue
        event("somebody goes")
        cluster.now += seconds * NANOSECONDS
        for victim in decision.preemption.victims:
            cluster.go(victim.pod)
        after = cluster.scheduler.framework.decide(cluster.scheduler._waitlist.pods[decision.pod])
        assert after.node == decision.preemption.node, after.message
