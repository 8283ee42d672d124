"""Syncs under test, one at a time."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.source.git.sync import Attempt, GitSync, SyncSettings
from koordpolicy.source.git.trouble import SyncError
from tests.integration.sources.repositories import ENVIRONMENT


def syncing(repository: str | Path, directory: Path, **settings: Any) -> GitSync:
    given = SyncSettings(str(repository), directory, **{"ref": "main", **settings})
    return GitSync(given, environment=ENVIRONMENT, jitter=lambda: 0.5, clock=time.time)


def sync(syncer: GitSync) -> Attempt:
    return asyncio.run(syncer.sync())


def fail(syncer: GitSync) -> SyncError:
    with pytest.raises(SyncError) as caught:
        asyncio.run(syncer.sync())
    return caught.value


def tree(directory: Path) -> dict[str, str]:
    """What stands behind a link or in a directory, without Git's own file."""
    root = directory.resolve()
    files = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return {path.as_posix(): (root / path).read_text() for path in files if ".git" not in path.parts}
