"""Where a manager keeps the key that it serves webhooks by."""

import argparse
import asyncio
import subprocess
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from koordpolicy.cli.flags.process import add_process_flags
from koordpolicy.cli.flags.webhooks import add_webhook_flags
from koordpolicy.cli.webhooks import webhooks_of
from koordpolicy.files import MemoryFile
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import SECRETS
from koordpolicy.manager.serving import WebhookOptions
from koordpolicy.manager.webhooks.certificates import SECRET, CertificateSettings, SharedCertificate
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.tls import context_of, stamp_of


def options(*arguments: str) -> WebhookOptions:
    parser = argparse.ArgumentParser()
    add_process_flags(parser)
    add_webhook_flags(parser)
    found = webhooks_of(parser.parse_args(["--webhook", "127.0.0.1:0", *arguments]))
    assert found is not None
    return found


async def directory(found: WebhookOptions, *, writes: str) -> tuple[Path, int, list[str]]:
    """The directory while the manager runs with its mode, and what lies in it."""
    async with AsyncExitStack() as stack:
        path = found.place(stack)
        assert isinstance(path, Path)
        before = [one.name for one in path.iterdir()]
        (path / writes).touch()
        return path, path.stat().st_mode & 0o777, before


def test_with_a_state_directory_the_key_lies_in_it_for_its_owner_and_is_found_by_the_next_start(
    tmp_path: Path,
) -> None:
    found = options("--state-dir", str(tmp_path))
    expected = tmp_path / "webhook"
    assert asyncio.run(directory(found, writes="serving.pem")) == (expected, 0o700, [])
    expected.chmod(0o755)
    assert asyncio.run(directory(found, writes="serving.pem")) == (expected, 0o700, ["serving.pem"])


async def served_from_memory() -> list[object]:
    """By which stamps servers see a pair that is made, and one that is made anew."""
    seen: list[object] = []
    async with AsyncExitStack() as stack:
        place = options().place(stack)
        assert isinstance(place, MemoryFile)
        cluster = MemoryCluster(Store(now_ns))
        shared = SharedCertificate(
            cluster, "default", CertificateSettings(("localhost",)), place, Metrics("manager"), Backoff(lambda: 0.0), now_ns, _nobody
        )  # fmt: skip
        for _ in range(2):
            await shared.first()
            seen.append(stamp_of(shared.tls))
            context_of(shared.tls)
            await cluster.delete(SECRETS, SECRET, namespace="default")
        return seen


async def _nobody() -> bytes | None:
    return None


def test_without_one_no_disk_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    before, after = asyncio.run(served_from_memory())
    assert before != after


def test_what_is_in_memory_is_replaced_as_a_whole() -> None:
    with MemoryFile("pair", b"long enough") as file:
        with file.path.open("rb") as before:
            file.write(b"new")
            assert (before.read(), file.path.read_bytes()) == (b"long enough", b"new")
        inherited = subprocess.run(["ls", "-l", "/dev/fd/"], capture_output=True, check=True, text=True)
        assert "memfd" not in inherited.stdout
