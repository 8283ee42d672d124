"""Where a manager keeps the key that it serves webhooks by."""

import argparse
import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from koordpolicy.cli.flags.process import add_process_flags
from koordpolicy.cli.flags.webhooks import add_webhook_flags
from koordpolicy.cli.webhooks import webhooks_of
from koordpolicy.manager.serving import WebhookOptions


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
        path = found.directory(stack)
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


def test_without_one_it_goes_with_the_process() -> None:
    path, mode, _ = asyncio.run(directory(options(), writes="serving.pem"))
    assert mode == 0o700
    assert not path.exists()
