"""What an agent in a dry run says of itself in the cluster, beside one that acts."""

import asyncio
from typing import Any

from koordpolicy.agent.reports.node_metrics import NodeMetricReporter
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODE_METRICS
from koordpolicy.model.agent_runs import AgentRuns, read_agent_runs, read_dry_run
from koordpolicy.model.metric import NodeMetric

ACTS, REHEARSES = AgentRuns(revision="a" * 40), AgentRuns(revision="b" * 40)
REPORT = NodeMetric("n", updated_at=1_800_000_000_000_000_000)


def test_a_dry_run_leaves_what_another_agent_says_and_goes_without_a_trace() -> None:
    store = Store(lambda: 1_800_000_000.0)
    store.create(NODE_METRICS, {"metadata": {"name": "n"}, "spec": {}})
    cluster = MemoryCluster(store)

    def standing() -> Any:
        return store.list(NODE_METRICS).items[0]

    async def scene() -> None:
        acting = NodeMetricReporter(cluster, "n", lambda: ACTS)
        assert await acting.report(REPORT, {})
        status = standing()["status"]
        rehearsing = NodeMetricReporter(cluster, "n", lambda: REHEARSES)
        await rehearsing.mark_dry_run()
        found = standing()
        assert (read_agent_runs(found), read_dry_run(found)) == (ACTS, REHEARSES)
        assert found["status"] == status
        version = found["metadata"]["resourceVersion"]
        await rehearsing.mark_dry_run()  # what stands is not written again
        assert standing()["metadata"]["resourceVersion"] == version
        await rehearsing.unmark_dry_run()
        assert (read_agent_runs(standing()), read_dry_run(standing())) == (ACTS, None)

    asyncio.run(scene())


def test_an_agent_that_acts_removes_the_mark_of_a_dry_run_that_was_killed() -> None:
    store = Store(lambda: 1_800_000_000.0)
    store.create(NODE_METRICS, {"metadata": {"name": "n"}, "spec": {}})
    cluster = MemoryCluster(store)

    async def scene() -> None:
        await NodeMetricReporter(cluster, "n", lambda: REHEARSES).mark_dry_run()
        assert await NodeMetricReporter(cluster, "n", lambda: ACTS).report(REPORT, {})
        [found] = store.list(NODE_METRICS).items
        assert (read_agent_runs(found), read_dry_run(found)) == (ACTS, None)

    asyncio.run(scene())


def test_a_dry_run_without_an_object_says_why_and_needs_no_farewell() -> None:
    async def scene() -> None:
        reporter = NodeMetricReporter(MemoryCluster(Store(lambda: 0.0)), "n", lambda: REHEARSES)
        await reporter.mark_dry_run()
        assert reporter.trouble.startswith("there is no NodeMetric object of this node")
        await reporter.unmark_dry_run()

    asyncio.run(scene())
