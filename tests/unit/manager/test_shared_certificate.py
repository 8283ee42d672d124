"""What a manager says while it cannot look after the webhooks' certificate."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.errors import KubeError, Unreachable
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NAMESPACES, Resource
from koordpolicy.manager.webhooks.certificates import CertificateSettings, SharedCertificate
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.runtime.metrics import Metrics
from tests.unit.runtime.scenes import running
from tests.virtual_time import run

START = 1_750_000_000


def test_a_trouble_that_lasts_is_told_once_and_then_hourly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The server has many words for one outage, and is asked every ten seconds."""

    def words() -> Iterator[KubeError]:
        while True:
            yield Unreachable("no answer in time")
            yield KubeError("etcdserver: leader changed")

    errors = words()
    away = False

    async def request(verb: str, resource: Resource) -> None:
        if away:
            raise next(errors)

    async def scene() -> None:
        nonlocal away
        store = Store(lambda: START)
        store.create(NAMESPACES, {"metadata": {"name": "system"}})

        async def believed() -> bytes | None:
            return None

        shared = SharedCertificate(
            MemoryCluster(store, before_request=request),
            "system",
            CertificateSettings(("webhook.system.svc",)),
            tmp_path,
            Metrics("manager"),
            Backoff(lambda: 0.0),
            lambda: int((START + asyncio.get_running_loop().time()) * NANOSECONDS),
            believed,
        )
        await shared.first()
        async with running(shared.run()):
            for state, seconds in ((True, 2 * 3600.0 + 60.0), (False, 60.0), (True, 60.0)):
                away = state
                await asyncio.sleep(seconds)

    run(scene())
    assert len(caplog.messages) == 3 + 1, caplog.messages
    assert all("cannot be looked after: " in message for message in caplog.messages)
