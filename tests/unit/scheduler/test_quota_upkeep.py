"""What the scheduler does about quotas beside decisions: figures in their objects, and evictions where too much is in use."""

from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.model.quota import read_quota
from koordpolicy.scheduler.quota_upkeep import QuotaUpkeep, write_of
from tests.unit.scheduler.test_quotas import Cluster, arguments, of, quota


def upkeep(world: Cluster) -> QuotaUpkeep:
    return QuotaUpkeep(lambda: world.quotas, MemoryCluster(Store(lambda: 0.0)), lambda: world.now)


def going(kept: QuotaUpkeep) -> list[str]:
    return [pod.name for _, pod in kept.due()]


def test_figures_are_written_where_they_differ() -> None:
    world = Cluster()
    quota(world.scheduler, "team", min="2", max="4")
    for name in ("a", "b", "c", "d", "e"):
        world.submit(name, of("team"))
    world.decided()
    team = world.quotas.tree.get("team")
    write = write_of(world.quotas, team)
    assert write is not None
    annotations = {
        key.partition("/")[2]: text for key, text in write.patch["metadata"]["annotations"].items()
    }
    assert annotations == {
        "runtime": '{"cpu":"4"}',
        "request": '{"cpu":"5"}',
        "child-request": '{"cpu":"5"}',
    }
    assert write.patch["status"] == {"used": {"cpu": "4"}}
    metadata = {**team.raw["metadata"], "annotations": write.patch["metadata"]["annotations"]}
    written = {**team.raw, "metadata": metadata, "status": write.patch["status"]}
    world.quotas.set(read_quota(written))
    assert write_of(world.quotas, world.quotas.tree.get("team")) is None
    for name in ("a", "b", "c", "d", "e"):
        world.scheduler.remove_pod(("default", name))
    write = write_of(world.quotas, world.quotas.tree.get("team"))
    assert write is not None
    assert write.patch["status"] == {"used": {"cpu": None}}
    assert set(write.patch["metadata"]["annotations"].values()) == {None, '{"cpu":"0"}'}


def test_what_was_lent_is_taken_back_after_a_while_from_the_least_important() -> None:
    world = Cluster(arguments(monitorAllQuotas=True, delayEvictTime="10s"))
    kept = upkeep(world)
    for name in ("a", "b"):
        quota(world.scheduler, name, min="10", max="20")
    for at in range(16):
        world.submit(f"b{at}", of("b", priority=9000 if at < 14 else 5000))
    world.decided()
    assert going(kept) == []
    for at in range(10):
        world.submit(f"a{at}", of("a"))
    world.decided()
    assert going(kept) == [], "it has just begun"
    world.pass_time(11)
    gone = going(kept)
    assert len(gone) == 6, "down to its own ten"
    assert {"b14", "b15"} <= set(gone), "the least important ones"
    assert going(kept) == [], "another time to go by"


def test_nobody_is_evicted_unless_policy_says_so() -> None:
    world = Cluster()
    kept = upkeep(world)
    quota(world.scheduler, "team", min="1", max="4")
    for at in range(4):
        world.submit(f"p{at}", of("team"))
    world.decided()
    quota(world.scheduler, "team", min="1", max="1")
    world.pass_time(1000)
    assert going(kept) == []
    world.pass_time(1000)
    assert going(kept) == []
