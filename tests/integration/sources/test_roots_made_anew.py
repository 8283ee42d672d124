"""A root that is removed and made anew is watched again: at once it may even have the number of the one before."""

import asyncio
import shutil
from pathlib import Path

import pytest

from koordpolicy.source.paths import open_source
from tests.integration.sources.following import EVENTS_ONLY, GitSyncLayout, fill, following

SWAPPED = "b" * 40
PAUSES = [0.0, 0.03, 0.3, 1.0]
"""Seconds without a root."""


@pytest.mark.parametrize("pause", PAUSES)
def test_the_root_of_git_sync(tmp_path: Path, pause: float) -> None:
    root = tmp_path / "volume" / "git"
    root.mkdir(parents=True)
    layout = GitSyncLayout(root)
    layout.publish("a" * 40, {"one.yaml": "1"})

    async def scene() -> None:
        async with following(open_source(layout.link, EVENTS_ONLY)) as source:
            await source.until("a" * 40)
            for number in range(6):
                commit = f"{number:040x}"
                shutil.rmtree(root)
                await asyncio.sleep(pause)
                root.mkdir()
                anew = GitSyncLayout(root)
                anew.publish(commit, {"one.yaml": commit})
                await source.until(commit)
                anew.publish(SWAPPED, {"one.yaml": "in place"})
                await source.until(SWAPPED)

    asyncio.run(scene())


@pytest.mark.parametrize("pause", PAUSES)
def test_a_plain_directory(tmp_path: Path, pause: float) -> None:
    root = tmp_path / "policies"
    root.mkdir()
    fill(root, {"one.yaml": "1"})

    async def scene() -> None:
        async with following(open_source(root, EVENTS_ONLY)) as source:
            await source.revision()
            for number in range(4):
                shutil.rmtree(root)
                await asyncio.sleep(pause)
                root.mkdir()
                for text in (f"{number} anew", f"{number} edited"):
                    fill(root, {"one.yaml": text})
                    while getattr(await source.next(), "files", None) != {"one.yaml": text}:
                        pass

    asyncio.run(scene())
