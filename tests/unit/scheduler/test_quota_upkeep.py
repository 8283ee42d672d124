"""What the scheduler does about quotas beside decisions: figures in their objects, and evictions where too much is in use."""

import asyncio
import logging

import pytest

from koordpolicy.kube import Object
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import ELASTIC_QUOTAS, NAMESPACES
from koordpolicy.model.protocol import (
    DEFAULT_QUOTA,
    QUOTA_IS_PARENT,
    QUOTA_LENDS,
    ROOT_QUOTA,
    SYSTEM_QUOTA,
)
from koordpolicy.model.quota import read_quota
from koordpolicy.scheduler.quota_upkeep import QuotaUpkeep, write_of
from tests.unit.scheduler.test_quotas import Cluster, arguments, of, quota, tree


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


def test_quotas_that_there_always_are_get_objects_where_these_are_absent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    asyncio.run(_create(caplog))


async def _create(caplog: pytest.LogCaptureFixture) -> None:
    given = {"quotaGroupNamespace": "quotas", "systemQuotaGroupMax": {"cpu": 2}}
    world = Cluster(arguments(**given))
    store = Store(lambda: 0.0)
    cluster = MemoryCluster(store)
    kept = QuotaUpkeep(lambda: world.quotas, cluster, lambda: world.now)
    own: Object = {
        "apiVersion": ELASTIC_QUOTAS.api_version, "kind": ELASTIC_QUOTAS.kind,
        "metadata": {"name": DEFAULT_QUOTA, "namespace": "quotas"}, "spec": {"max": {"cpu": "7"}},
    }  # fmt: skip
    await kept.report_once()
    assert not (await cluster.list(ELASTIC_QUOTAS)).items, "there is no such namespace yet"
    assert "quotas" in caplog.text
    assert not [one for one in caplog.records if one.levelno > logging.INFO], "which is nobody's fault"
    await cluster.create(NAMESPACES, {"metadata": {"name": "quotas"}})
    await cluster.create(ELASTIC_QUOTAS, own, namespace="quotas")
    world.pass_time(61)
    await kept.report_once()
    there = {one["metadata"]["name"]: one for one in (await cluster.list(ELASTIC_QUOTAS)).items}
    assert sorted(there) == sorted((DEFAULT_QUOTA, ROOT_QUOTA, SYSTEM_QUOTA))
    assert there[DEFAULT_QUOTA]["spec"] == {"max": {"cpu": "7"}}, "what is there stays"
    assert there[SYSTEM_QUOTA]["spec"] == {"max": {"cpu": "2"}}
    assert there[ROOT_QUOTA]["metadata"]["labels"] == {QUOTA_IS_PARENT: "true", QUOTA_LENDS: "false"}
    for one in there.values():
        world.scheduler.set_state(lambda state, one=one: state.quotas.set(read_quota(one)), None)  # type: ignore[misc]
    assert not world.quotas.active, "they hold nobody to anything"
    await cluster.delete(ELASTIC_QUOTAS, SYSTEM_QUOTA, namespace="quotas")
    world.quotas.remove("quotas", SYSTEM_QUOTA)
    await kept.report_once()
    assert len((await cluster.list(ELASTIC_QUOTAS)).items) == 2, "not at once"
    world.pass_time(61)
    await kept.report_once()
    assert len((await cluster.list(ELASTIC_QUOTAS)).items) == 3


def test_no_quota_is_created_where_policy_says_so() -> None:
    world = Cluster(tree(builtin={"created": False}))
    cluster = MemoryCluster(Store(lambda: 0.0))
    asyncio.run(QuotaUpkeep(lambda: world.quotas, cluster, lambda: world.now).report_once())
    assert not asyncio.run(cluster.list(ELASTIC_QUOTAS)).items
