"""Quotas in the scheduler: who waits for which, who is tried again, and that accounts follow whatever happens."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from koordpolicy.cluster.events import Event
from koordpolicy.graph import RuleGraph
from koordpolicy.model.protocol import (
    DEFAULT_QUOTA,
    QUOTA_IS_PARENT,
    QUOTA_IS_ROOT,
    QUOTA_LENDS,
    QUOTA_NAME,
    QUOTA_NAMESPACES,
    QUOTA_PARENT,
    QUOTA_SHARED_WEIGHT,
    QUOTA_TOTAL,
    QUOTA_TREE_ID,
)
from koordpolicy.model.quota import read_quota
from koordpolicy.scheduler.scheduler import Scheduler
from tests.unit.scheduler.world import World, pod, policies
from tests.vectors.policies import document, graph

Given = Mapping[str, Any]

TREE = "QuotaTree"
RESERVED = {"quota.scheduling.koordinator.sh/preemptible": "false"}


def tree(**spec: Any) -> RuleGraph:
    """The built-in pack, and what a document says above it."""
    return graph(document(TREE, "own", spec))


def arguments(**values: Any) -> RuleGraph:
    return tree(parameters={name: {"value": value} for name, value in values.items()})


def quota(scheduler: Scheduler, name: str, **given: Any) -> None:
    """An object of a quota: `min` and `max` as amounts of cpu, `parent`, `labels`, `annotations`."""
    labels = {QUOTA_PARENT: given["parent"]} if "parent" in given else {}
    obj = {
        "metadata": {
            "name": name,
            "namespace": given.get("namespace", "quotas"),
            "labels": {**labels, **given.get("labels", {})},
            "annotations": given.get("annotations", {}),
        },
        "spec": {key: {"cpu": given[key]} for key in ("min", "max") if key in given},
    }
    scheduler.set_state(lambda state: state.quotas.set(read_quota(obj)), Event.QUOTA_CHANGED)


def gone(scheduler: Scheduler, name: str) -> None:
    scheduler.set_state(lambda state: state.quotas.remove("quotas", name), Event.QUOTA_CHANGED)


def of(team: str, cpu: str = "1", **more: Any) -> Given:
    """A pod of a team."""
    labels = {QUOTA_NAME: team, **more.pop("labels", {})}
    return {"labels": labels, "request": {"cpu": cpu}, **more}


class Cluster(World):
    """Two nodes with ten cores each."""

    def __init__(self, compiled: RuleGraph | None = None, **options: Any) -> None:
        super().__init__(compiled, **options)
        self.build({"nodes": {"n0": {}, "n1": {}}})

    @property
    def quotas(self) -> Any:
        return self.scheduler.cache.state.quotas

    def used(self, name: str) -> int:
        return int(self.quotas.sums(name).get(name).used.get("cpu", 0))

    def decided(self) -> dict[str, str]:
        """All that is decided on now: pod → node, or why there is none."""
        found = {}
        while (decision := self.scheduler.schedule_one()) is not None:
            why = decision.refusals[0].reason if decision.refusals else decision.remark
            found[decision.pod[1]] = decision.node or why
        return found


def test_without_quotas_nothing_is_kept() -> None:
    world = Cluster()
    assert world.place("a", of("team")).placed
    assert not world.quotas.active
    assert world.quotas.pods_of(DEFAULT_QUOTA) == {}
    quota(world.scheduler, "team", min="1", max="4")
    assert world.used("team") == 1000, "pods that were there before count"
    gone(world.scheduler, "team")
    assert not world.quotas.active


def test_a_pod_waits_until_its_quota_has_room() -> None:
    world = Cluster()
    quota(world.scheduler, "team", min="1", max="2")
    quota(world.scheduler, "other", min="1", max="2")
    for name in ("a", "b", "c", "d"):
        world.submit(name, of("team"))
    for name in ("x", "y", "z"):
        world.submit(name, of("other"))
    found = world.decided()
    assert [name for name in found if not found[name].startswith("ElasticQuota")] == ["a", "b", "x", "y"]
    assert found["c"] == "ElasticQuota: team: 2 of 2 cpu in use, 1 more requested"
    assert world.scheduler.waiting["gated"] == 3
    world.scheduler.remove_pod(("default", "x"))
    assert list(world.decided()) == ["z"], "it helps the other team, and one of its pods alone"
    world.scheduler.remove_pod(("default", "a"))
    assert list(world.decided()) == ["c"], "who came first"
    quota(world.scheduler, "team", min="1", max="4")
    assert world.decided() != {}
    assert world.used("team") == 3000


def test_what_is_told_of_a_pod_that_waits_for_its_quota_is_renewed() -> None:
    world = Cluster(policies({"diagnosis": {"renewAfter": "15s"}}), diagnosing=True)
    quota(world.scheduler, "team", min="4", max="4")
    assert world.place("a", of("team", "3")).placed
    world.submit("b", of("team", "4"))
    world.submit("c", of("team", "4"))
    assert world.decided()["b"] == "ElasticQuota: team: 3 of 4 cpu in use, 4 more requested"
    world.submit("d", of("team", "1"))
    assert world.decided()["d"] in ("n0", "n1")
    world.diagnose()
    assert world.decided() == {}, "it was told just now"
    world.pass_time(20)
    world.diagnose()
    assert world.decided() == dict.fromkeys("bc", "ElasticQuota: team: 4 of 4 cpu in use, 4 more requested")
    world.pass_time(20)
    for decision in world.diagnose():
        assert "4 of 4 cpu" in decision.message, "what stands in no condition is told once more"
    assert world.decided() == {}, "nothing is new"
    for name in "ad":
        world.scheduler.remove_pod(("default", name))
    found = world.decided()
    assert found["b"] in ("n0", "n1"), "who came first is first, however often it was asked about"
    assert "c" not in found


def test_what_a_team_does_not_ask_for_is_lent_and_comes_back() -> None:
    world = Cluster()
    for name in ("a", "b"):
        quota(world.scheduler, name, min="10", max="20")
    for at in range(16):
        world.submit(f"b{at}", of("b"))
    world.decided()
    assert world.used("b") == 16_000
    for at in range(10):
        world.submit(f"a{at}", of("a"))
    found = world.decided()
    assert world.quotas.limit("a") == {"cpu": 10_000}
    assert world.quotas.limit("b") == {"cpu": 10_000}, "what was lent is wanted back"
    assert sum(not why.startswith("ElasticQuota") for why in found.values()) == 10
    world.submit("b-more", of("b"))
    assert world.decided()["b-more"] == ("ElasticQuota: b: 16 of 10 cpu in use, 1 more requested")


def test_room_in_a_quota_goes_to_the_next_where_the_first_cannot_have_it() -> None:
    world = Cluster()
    quota(world.scheduler, "team", min="10", max="10")
    gang = {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"}
    assert world.place("there", of("team", "6")).placed
    world.submit("a", of("team", "6", annotations=gang))
    world.submit("b", of("team", "6", annotations=gang))
    world.decided()
    world.scheduler.remove_pod(("default", "b"))
    world.submit("far", of("team", "6", nodeSelector={"there": "is none"}))
    world.submit("next", of("team", "6"))
    assert "6 of 10 cpu in use" in world.decided()["next"]
    world.scheduler.remove_pod(("default", "there"))
    found = world.decided()
    assert "does not have its 2 pods yet" in found["a"]
    assert found["next"] in ("n0", "n1")
    assert world.decided() == {}


def test_a_gang_has_what_another_quota_does_not_ask_for_any_more() -> None:
    world = Cluster()
    for name in ("a", "b"):
        quota(world.scheduler, name, min="1", max="20")
    gang = {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "6"}
    world.submit("large", of("b", "12"))
    for at in range(6):
        world.submit(f"a{at}", of("a", "2", annotations=gang))
    found = world.decided()
    assert "12 more requested" in found["large"]
    assert "a: 10 of 10 cpu in use, 2 more requested" in found["a5"]
    assert world.used("a") == 0
    world.pass_time(15)
    world.scheduler.remove_pod(("default", "large"))
    assert {name for name, where in world.decided().items() if where in ("n0", "n1")} == {
        f"a{at}" for at in range(6)
    }


def test_the_more_important_pod_takes_the_place_of_one_of_its_quota() -> None:
    world = Cluster()
    quota(world.scheduler, "team", min="2", max="2")
    quota(world.scheduler, "other", min="2", max="2")
    assert world.place("mine", of("team", "2", priority=5000)).placed
    assert world.place("theirs", of("other", "2", priority=5000)).placed
    decision = world.place("urgent", of("team", "2", priority=9000))
    assert decision.preemption is not None
    assert [victim.pod[1] for victim in decision.preemption.victims] == ["mine"]
    assert world.used("team") == 2000, "what was tried is taken back"
    assert "more requested" in world.place("equal", of("team", "2", priority=5000)).remark
    world.scheduler.remove_pod(("default", "mine"))
    world.pass_time(60)
    assert world.decided()["urgent"] in ("n0", "n1")


def test_what_others_went_for_is_free_again_where_the_quota_is_used_up_in_the_meantime() -> None:
    world = Cluster()
    quota(world.scheduler, "team", min="2", max="2")
    quota(world.scheduler, "other", min="18", max="20")
    for name in ("first", "second"):
        assert world.place(name, of("other", "10", priority=5000)).placed
    decision = world.place("urgent", of("team", "2", priority=9000))
    assert decision.preemption is not None
    (victim,) = decision.preemption.victims
    node = decision.preemption.node
    elsewhere = {"n0": "n1", "n1": "n0"}[node]
    world.scheduler.set_pod(pod("colleague", {**of("team", "2"), "node": elsewhere, "phase": "Running"}))
    world.scheduler.remove_pod(victim.pod)
    world.pass_time(60)
    assert "more requested" in world.decided()["urgent"]
    assert world.scheduler.ledger.promised_to(("default", "urgent")) is None
    assert world.place("another", {"request": {"cpu": "9"}, "priority": 5000}).node == node


def test_pods_that_are_not_preempted_have_the_min_at_most() -> None:
    world = Cluster()
    quota(world.scheduler, "team", min="1", max="4")
    assert world.place("a", of("team", labels=RESERVED)).placed
    assert "of the min" in world.place("b", of("team", labels=RESERVED)).remark
    assert world.place("c", of("team")).placed


def test_quotas_above_count_where_policy_says_so() -> None:
    for checked in (False, True):
        world = Cluster(arguments(enableCheckParentQuota=checked, enableRuntimeQuota=False))
        quota(world.scheduler, "up", max="1")
        for name in ("a", "b"):
            quota(world.scheduler, name, max="2", parent="up")
        assert world.place("one", of("a")).placed
        decision = world.place("two", of("b"))
        assert decision.placed is not checked
        if checked:
            assert decision.remark == "ElasticQuota: up: 1 of 1 cpu in use, 1 more requested (above b)"


def test_quotas_above_others_take_pods_unless_policy_says_otherwise() -> None:
    above = {"labels": {QUOTA_IS_PARENT: "true"}}
    for taken in (True, False):
        world = Cluster(tree(scheduling={"ofParents": taken}))
        quota(world.scheduler, "up", max="4", **above)
        quota(world.scheduler, "down", max="4", parent="up")
        decision = world.place("a", of("up"))
        assert decision.placed is taken
        assert taken or "up: it has quotas below it" in decision.message
        assert world.place("b", of("down")).placed


def test_a_namespace_leads_to_a_quota() -> None:
    world = Cluster()
    quota(world.scheduler, "shop", max="1", annotations={QUOTA_NAMESPACES: '["web"]'})
    world.submit("a", {"namespace": "web", "request": {"cpu": "1"}})
    world.submit("b", {"namespace": "web", "request": {"cpu": "1"}})
    assert "shop: 1 of 1 cpu" in world.decided()["b"]
    quota(world.scheduler, "web", max="2", namespace="web")
    assert world.decided()["b"] in ("n0", "n1"), "the quota of its name comes first"
    assert world.used("web") == 2000
    assert world.used("shop") == 0


def test_policy_alone_may_give_quotas_and_objects_take_their_place() -> None:
    world = Cluster(
        tree(
            quotas=[
                {"name": "org", "max": {"cpu": 3}, "min": {"cpu": 2}},
                {"name": "team", "parent": "org", "max": {"cpu": 3}, "namespaces": ["default"]},
                {"name": "unused", "enabled": False, "max": {"cpu": 3}},
            ]
        )
    )
    for at in range(4):
        world.submit(f"p{at}", {"request": {"cpu": "1"}})
    found = world.decided()
    assert found["p3"].startswith("ElasticQuota: team: 3 of 3 cpu in use")
    assert sorted(one.quota.name for one in world.quotas if not one.quota.name.startswith("koord")) == [
        "org",
        "team",
    ]
    quota(world.scheduler, "team", max="4", parent="org", annotations={QUOTA_NAMESPACES: '["default"]'})
    quota(world.scheduler, "org", max="4")
    assert world.decided()["p3"] in ("n0", "n1")
    gone(world.scheduler, "org")
    gone(world.scheduler, "team")
    assert world.quotas.limit("team") == {"cpu": 3000}
    assert world.used("org") == 4000


def test_a_revision_has_everything_counted_anew() -> None:
    world = Cluster()
    quota(world.scheduler, "team", max="1")
    assert world.place("a", of("team")).placed
    assert not world.place("b", of("team")).placed
    world.scheduler.replace_graph(arguments(enableRuntimeQuota=False))
    assert world.used("team") == 1000
    assert world.decided() == {}, "it has been told why already"
    assert world.scheduler.waiting["gated"] == 1
    world.scheduler.replace_graph(tree(scheduling={"enabled": False}))
    assert world.decided()["b"] in ("n0", "n1")


def test_trees_have_what_their_roots_say() -> None:
    world = Cluster(arguments(multiQuotaTree=True))
    root = {"labels": {QUOTA_TREE_ID: "t", QUOTA_IS_ROOT: "true"}, "annotations": {QUOTA_TOTAL: '{"cpu": 4}'}}
    quota(world.scheduler, "t-root", min="4", max="4", **root)
    quota(world.scheduler, "t-team", max="100", parent="t-root", labels={QUOTA_TREE_ID: "t"})
    quota(world.scheduler, "team", max="100")
    for at in range(25):
        world.submit(f"t{at}", of("t-team"))
        world.submit(f"p{at}", of("team"))
    world.decided()
    assert world.used("t-team") == 4000
    assert world.used("team") == 16_000, "the rest of the nodes"


def test_the_default_quota_takes_from_what_is_shared() -> None:
    world = Cluster()
    quota(world.scheduler, "team", max="100", annotations={QUOTA_SHARED_WEIGHT: '{"cpu": 1}'})
    for at in range(5):
        assert world.place(f"p{at}", {"request": {"cpu": "1"}}).placed
    world.submit("big", of("team", "16"))
    assert "team: 0 of 15 cpu in use, 16 more requested" in world.decided()["big"]
    world.scheduler.remove_pod(("default", "p0"))
    assert "Insufficient cpu" in world.decided()["big"], "it is within its quota, and too large for a node"
    assert world.quotas.limit("team") == {"cpu": 16_000}


def test_a_quota_may_keep_what_it_does_not_use() -> None:
    world = Cluster()
    quota(world.scheduler, "keeps", min="15", max="20", labels={QUOTA_LENDS: "false"})
    quota(world.scheduler, "team", max="20")
    for at in range(8):
        world.submit(f"p{at}", of("team"))
    world.decided()
    assert world.used("team") == 5000


@pytest.mark.parametrize("seed", range(6))
def test_accounts_are_what_a_new_scheduler_would_count(seed: int) -> None:
    draw = random.Random(seed)
    world = Cluster(arguments(guaranteeUsage=seed % 3 == 2))
    pods: dict[str, Given] = {}
    for at in range(120):
        what = draw.random()
        name = draw.choice("abcd")
        if what < 0.2:
            parent = {"parent": draw.choice("ab")} if name in "cd" else {}
            quota(world.scheduler, name, min=str(draw.randint(0, 3)), max=str(draw.randint(1, 8)), **parent)
        elif what < 0.25:
            gone(world.scheduler, name)
        elif what < 0.6:
            pods[f"p{at}"] = of(name, str(draw.randint(1, 3)), priority=draw.choice((5000, 9000)))
            world.submit(f"p{at}", pods[f"p{at}"])
        elif what < 0.75 and pods:
            victim = draw.choice(sorted(pods))
            world.scheduler.remove_pod(("default", victim))
            del pods[victim]
        else:
            world.pass_time(draw.randint(0, 30))
            for _ in range(draw.randint(1, 6)):
                world.scheduler.schedule_one()
        if at % 20 == 19:
            assert _sums(world) == _sums(_rebuilt(world, pods)), at


def _rebuilt(world: Cluster, pods: Mapping[str, Given]) -> Cluster:
    other = Cluster(world.scheduler.framework.graph)
    for name, given in pods.items():
        on = world.scheduler.cache.node_of(("default", name))
        other.scheduler.set_pod(pod(name, given if on is None else {**given, "node": on, "phase": "Running"}))
    for one in world.quotas.tree:
        other.scheduler.set_state(lambda state, one=one: state.quotas.set(one), Event.QUOTA_CHANGED)  # type: ignore[misc]
    return other


def _sums(world: Cluster) -> Mapping[str, object]:
    quotas = world.quotas
    found = {}
    for kept in quotas:
        name = kept.quota.name
        account = quotas.sums(name).get(name)
        found[name] = (
            account.request, account.used, account.guaranteed, quotas.limit(name), sorted(quotas.pods_of(name)),
            quotas._quotas[name].by_priority(),
        )  # fmt: skip
    return found
