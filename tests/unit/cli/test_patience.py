"""Where a cluster lets people wait, they are told what for; nothing is said where it does not."""

import asyncio

import pytest

from koordpolicy.cli.patience import snapshot_of
from koordpolicy.kube.errors import Unreachable
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NODES, PODS, Resource
from koordpolicy.kube.snapshot import SnapshotError
from tests.virtual_time import run


def read(slow: Resource | None, *, fails: bool = False) -> list[str]:
    """What is said while a cluster of three nodes is read that takes a minute for one of its resources."""

    async def before(_method: str, resource: Resource) -> None:
        if resource == slow:
            await asyncio.sleep(60.0)
            if fails:
                raise Unreachable("it is gone")

    store = Store(lambda: 0.0)
    for name in "abc":
        store.create(NODES, {"metadata": {"name": name}})
    said: list[str] = []
    run(snapshot_of(MemoryCluster(store, before_request=before), 0, said.append))
    return said


def test_a_cluster_that_answers_is_read_without_a_word() -> None:
    assert read(None) == []


def test_it_is_said_what_is_waited_for_less_and_less_often() -> None:
    # After 5 s, 15 s and 35 s of 60.
    assert read(PODS) == ["still waiting for the cluster to list pods, after 3 other objects"] * 3


def test_an_error_is_raised_whenever_it_comes() -> None:
    with pytest.raises(SnapshotError, match="pods cannot be listed: it is gone"):
        read(PODS, fails=True)
