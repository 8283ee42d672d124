"""Admission policies in a cluster, as far as no API server is needed: see `tests/integration/webhooks/test_native_admission.py`."""

import asyncio

import pytest

from koordpolicy.kube.errors import NotFound
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.manager.native.keeping import NativePolicies
from tests.vectors.policies import graph


def test_a_server_without_such_policies_troubles_only_who_wants_them() -> None:
    asyncio.run(_without_such_policies())


async def _without_such_policies() -> None:
    cluster = MemoryCluster(Store(lambda: 0))
    unwanted = NativePolicies(cluster, (), enabled=False)
    assert await unwanted.in_force(graph()) == frozenset()
    await unwanted.write(graph())
    assert not unwanted.troubles
    with pytest.raises(NotFound):
        await NativePolicies(cluster, (), enabled=True).in_force(graph())
