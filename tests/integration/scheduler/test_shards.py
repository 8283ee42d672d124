"""Two schedulers at work at the same time, each on its share of the nodes of a real API server."""

from contextlib import ExitStack
from typing import Any

from koordpolicy.model.protocol import SHARD
from koordpolicy.scheduler.shards import share_of
from tests.integration.scheduler.sites import Scheduler, Site, bindings

NODES = 10


def shards(site: Site, stack: ExitStack) -> list[Scheduler]:
    """Both, leading."""
    found = [stack.enter_context(site.scheduler(f"shard-{at}", "--shard", f"{at}/2")) for at in range(2)]
    for at, one in enumerate(found):
        site.eventually(lambda one=one: one.leads, "it leads")  # type: ignore[misc]
        assert one.status["shard"] == f"{at}/2"
        assert site.holder(f"koordpolicy-scheduler-{at}-of-2")
    return found


def placed(scheduler: Scheduler) -> float:
    """How many pods it has placed."""
    return scheduler.metric('koordpolicy_scheduler_attempts_total{result="scheduled"}')


def route_of(found: dict[str, Any]) -> str | None:
    """The way that a pod's annotation tells."""
    return dict(found["metadata"].get("annotations", {})).get(SHARD)


def test_all_pods_are_bound_once_and_no_node_is_over_capacity(site: Site) -> None:
    for number in range(NODES):
        site.node(f"n-{number}", {"cpu": "2", "memory": "8Gi", "pods": "10"})
    with ExitStack() as stack:
        both = shards(site, stack)
        for number in range(90):  # of 100 places, in two shares of any size
            site.pod(f"p-{number}", "200m")
        site.eventually(lambda: not site.waiting(), "all are bound")
        site.check_capacity()
        site.eventually(lambda: sum(map(placed, both)) == 90, "they say so")
        where = site.where()
        for at, one in enumerate(both):
            own = [name for name, node in where.items() if share_of(node, 2) == at]
            assert own
            assert placed(one) == len(own)
            assert one.metric('koordpolicy_scheduler_attempts_total{result="bind_failed"}') == 0
        site.eventually(lambda: len(bindings(site)) == 90, "each binding is told")
        assert len(set(bindings(site))) == 90


def test_a_pod_is_passed_on_to_where_it_fits_and_waits_at_home_where_it_fits_nowhere(site: Site) -> None:
    for at in range(2):
        site.node(f"small-{at}", {"cpu": "1", "memory": "8Gi", "pods": "10"}, **{SHARD: str(at)})
    site.node("large", {"cpu": "8", "memory": "8Gi", "pods": "10"}, **{SHARD: "1"})
    with ExitStack() as stack:
        first, _ = shards(site, stack)
        for number in range(6):
            site.pod(f"p-{number}", "1200m")
        site.eventually(lambda: not site.waiting(), "all are bound")
        assert set(site.where().values()) == {"large"}
        pods = site.pods()
        homes = {name: share_of(one["metadata"]["uid"], 2) for name, one in pods.items()}
        assert {name: route_of(one) for name, one in pods.items()} == {
            name: "0>1" if home == 0 else None for name, home in homes.items()
        }
        assert first.metric('koordpolicy_scheduler_attempts_total{result="passed_on"}') == list(
            homes.values()
        ).count(0)
        site.pod("huge", "16")
        site.eventually(lambda: site.refusal("huge")[0], "it is told")
        reason, message = site.refusal("huge")
        assert reason == "Unschedulable"
        assert message.startswith("0/3 nodes are available: 3 Insufficient cpu")
        assert route_of(site.pods()["huge"]) is None
        site.node("giant", {"cpu": "32", "memory": "8Gi", "pods": "10"}, **{SHARD: "0"})
        site.eventually(lambda: site.where().get("huge") == "giant", "it finds the new one")


def test_what_a_killed_one_had_is_done_when_it_is_back(site: Site) -> None:
    for number in range(NODES):
        site.node(f"n-{number}", {"cpu": "2", "memory": "8Gi", "pods": "10"})
    with ExitStack() as stack:
        first, second = shards(site, stack)
        for number in range(20):
            site.pod(f"before-{number}", "200m")
        site.eventually(lambda: not site.waiting(), "all are bound")
        first.running.kill()
        for number in range(40):
            site.pod(f"during-{number}", "200m")
        homes = {name: share_of(one["metadata"]["uid"], 2) for name, one in site.pods().items()}
        site.eventually(
            lambda: (
                {homes[name] for name in site.waiting()} == {0}
                and len(site.waiting()) == sum(home == 0 for name, home in homes.items() if "during" in name)
            ),
            "the other one goes on with its own",
        )
        with site.scheduler("shard-0-again", "--shard", "0/2"):
            site.eventually(lambda: not site.waiting(), "all are bound")
            site.check_capacity()
            assert second.running.running
            assert {share_of(node, 2) for node in site.where().values()} == {0, 1}
