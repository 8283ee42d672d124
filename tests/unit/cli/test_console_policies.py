"""Policies of files that the console of a live cluster follows as processes do."""

import asyncio
from contextlib import aclosing
from pathlib import Path

from koordpolicy.cli.console_policies import ConsolePolicies, FollowedFiles
from koordpolicy.source.paths import open_source
from koordpolicy.source.revision import Revision

API = "apiVersion: koordpolicy.io/v1alpha1\n"
PATIENCE = 30.0


def written(folder: Path, step: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "koordpolicy.yaml").write_text(
        f"{API}kind: PolicyBundle\nmetadata: {{name: ours}}\nspec: {{extends: [koordinator]}}\n"
    )
    (folder / "pool.yaml").write_text(
        f"{API}kind: CPUSuppress\nmetadata: {{name: pool}}\nspec: {{growth: {{step: {step}}}}}\n"
    )
    return folder


def led(link: Path, target: Path) -> None:
    """Let a link lead elsewhere in one step, as git-sync does."""
    aside = link.with_name("aside")
    aside.symlink_to(target)
    aside.replace(link)


async def digest_of_processes(path: Path) -> str:
    async with aclosing(open_source(path).revisions()) as found:  # type: ignore[type-var]  # a generator
        async for item in found:
            assert isinstance(item, Revision)
            return item.digest
    raise AssertionError


def test_a_link_that_leads_elsewhere_is_followed_and_what_is_no_good_changes_nothing(tmp_path: Path) -> None:
    one, two = written(tmp_path / ("a" * 40), "15%"), written(tmp_path / ("b" * 40), "25%")
    bad = written(tmp_path / ("c" * 40), "[]")
    live = tmp_path / "live"
    live.symlink_to(one)

    async def whole() -> None:
        told: asyncio.Queue[ConsolePolicies] = asyncio.Queue()
        behind: asyncio.Queue[str] = asyncio.Queue()
        followed = FollowedFiles([str(live)], None)
        following = asyncio.create_task(followed.follow(told.put_nowait, behind.put_nowait))
        try:
            async with asyncio.timeout(PATIENCE):
                first = await told.get()
                assert "15%" in "".join(first.files.values())
                assert first.digest == await digest_of_processes(live)
                assert await behind.get() == ""
                led(live, two)
                second = await told.get()
                assert "25%" in "".join(second.files.values())
                assert second.graph.digest != first.graph.digest
                assert second.digest == await digest_of_processes(live)
                led(live, bad)
                while not (why := await behind.get()):
                    pass
                assert "the policies do not compile" in why
                assert "pool.yaml:4" in why
                live.unlink()
                while "cannot be read" not in (why := await behind.get()):
                    pass
                led(live, two)
                assert (await told.get()).digest == second.digest
                while why:
                    why = await behind.get()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        assert told.empty()

    asyncio.run(whole())
