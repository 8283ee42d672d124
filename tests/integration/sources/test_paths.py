"""Directories, links and volumes as they really change, noticed by real events."""

import asyncio
import os
import random
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest

from koordpolicy.source import Revision, SourceTrouble, paths
from koordpolicy.source import survey as surveying
from koordpolicy.source import texts as reading
from koordpolicy.source.paths import Timing, open_source
from tests.integration.sources.following import (
    EVENTS_ONLY,
    POLLING,
    Followed,
    GitSyncLayout,
    KubeletVolume,
    fill,
    following,
)

A, B, C = "a" * 40, "b" * 40, "c" * 64


def follow(
    path: Path, scene: Callable[[Followed], Awaitable[None]], timing: Timing = EVENTS_ONLY
) -> list[Revision | SourceTrouble]:
    """Play a scene while the source at a path is followed; all that it gave."""

    async def play() -> list[Revision | SourceTrouble]:
        async with following(open_source(path, timing)) as followed:
            await scene(followed)
        return followed.all

    return asyncio.run(play())


class TestGitSyncLayout:
    def test_each_swap_is_a_revision_named_after_the_commit(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path)
        layout.publish(A, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            first = await source.revision()
            assert (first.commit, first.name, first.files) == (A, A, {"one.yaml": "1"})
            layout.publish(B, {"two.yaml": "2"})
            assert (await source.revision()).files == {"two.yaml": "2"}
            layout.publish(C, {"two.yaml": "2"})
            third = await source.revision()
            assert (third.commit, third.files) == (C, {"two.yaml": "2"})

        follow(layout.link, scene)

    def test_going_back_is_a_revision_and_the_same_again_is_none(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path)
        layout.publish(A, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            await source.revision()
            layout.publish(B, {"one.yaml": "2"})
            assert (await source.revision()).commit == B
            layout.swap(A)
            assert (await source.revision()).commit == A
            layout.swap(A)
            os.utime(layout.tree(A))
            assert await source.quiet()

        follow(layout.link, scene)

    def test_waits_for_the_first_tree(self, tmp_path: Path) -> None:
        root = tmp_path / "git"
        link = root / "repository"

        async def scene(source: Followed) -> None:
            assert await source.trouble() == SourceTrouble("Missing", f"`{link}` does not exist")
            root.mkdir()
            layout = GitSyncLayout(root)
            layout.check_out(A, {"one.yaml": "1"})
            assert await source.quiet()
            layout.swap(A)
            assert (await source.revision()).commit == A

        follow(link, scene)

    def test_a_link_that_goes_is_trouble_and_the_last_revision_is_given_again(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path)
        layout.publish(A, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            first = await source.revision()
            layout.link.unlink()
            assert (await source.trouble()).reason == "Missing"
            assert await source.quiet(), "a trouble is told once"
            layout.swap(A)
            assert await source.revision() == first

        follow(layout.link, scene)

    def test_a_link_to_nothing(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path)
        layout.publish(A, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            await source.revision()
            layout.swap(B)
            trouble = await source.trouble()
            assert trouble.message == f"`{layout.link}` leads to nothing: a link on the way is broken"
            layout.check_out(B, {"one.yaml": "2"})
            layout.swap(B)
            assert (await source.revision()).commit == B

        follow(layout.link, scene)

    def test_an_empty_tree_never_becomes_a_revision(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path)
        layout.publish(A, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            await source.revision()
            layout.publish(B, {"readme.md": "no policies"})
            assert (await source.trouble()).reason == "Empty"
            layout.publish(C, {"one.yaml": "3"})
            assert (await source.revision()).commit == C

        follow(layout.link, scene)

    def test_a_directory_of_the_repository(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path)
        layout.publish(A, {"clusters/prod/one.yaml": "1", "clusters/test/one.yaml": "x"})

        async def scene(source: Followed) -> None:
            first = await source.revision()
            assert (first.commit, first.files) == (A, {"one.yaml": "1"})
            layout.publish(B, {"clusters/prod/one.yaml": "2"})
            assert (await source.revision()).files == {"one.yaml": "2"}
            layout.publish(C, {"elsewhere.yaml": "3"})
            assert (await source.trouble()).reason == "Missing"

        follow(layout.link / "clusters" / "prod", scene)

    def test_a_link_elsewhere_with_the_volume_at_another_path(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path / "first")
        layout.publish(A, {"one.yaml": "1"})
        (tmp_path / "mount").symlink_to("first")

        async def scene(source: Followed) -> None:
            assert (await source.revision()).commit == A
            layout.publish(B, {"one.yaml": "2"})
            assert (await source.revision()).commit == B

        follow(tmp_path / "mount" / "repository", scene)

    def test_links_in_the_tree_may_not_leave_it(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path)
        layout.publish(A, {"base/one.yaml": "1"})
        layout.check_out(B, {"base/one.yaml": "1"})
        (layout.tree(B) / "two.yaml").symlink_to(f"../{A}/base/one.yaml")
        (layout.tree(B) / "z.yaml").symlink_to("base/one.yaml")

        async def scene(source: Followed) -> None:
            await source.revision()
            layout.swap(B)
            second = await source.revision()
            assert [(one.span.file, one.message) for one in second.found] == [
                ("two.yaml", "the link leads out of the tree")
            ]
            assert second.files == {"base/one.yaml": "1"}

        follow(layout.link, scene)

    def test_never_mixes_two_commits_though_the_old_tree_goes_at_once(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path)
        names = [f"{number // 20}/{number}.yaml" for number in range(200)]
        commits = [f"{number:040x}" for number in range(50)]
        for commit in commits:
            layout.check_out(commit, dict.fromkeys(names, commit))
        layout.swap(commits[0])

        async def scene(source: Followed) -> None:
            for before, commit in pairwise(commits):
                layout.swap(commit)
                await asyncio.to_thread(shutil.rmtree, layout.tree(before))
                await asyncio.sleep(random.choice([0, 0.02, 0.05]))
            await source.until(commits[-1])

        given = follow(layout.link, scene)
        assert [one for one in given if isinstance(one, SourceTrouble)] == []
        for revision in given:
            assert isinstance(revision, Revision)
            assert revision.files == dict.fromkeys(names, revision.commit), (
                "a tree is read as a whole or not at all"
            )
        order = [one.commit for one in given if isinstance(one, Revision)]
        assert order == sorted(order), "only the newest is given"

    def test_a_tree_whose_removal_has_begun_is_not_taken_for_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        layout = GitSyncLayout(tmp_path)
        layout.check_out(B, {"one.yaml": "2", "two.yaml": "2"})
        layout.check_out(A, {"one.yaml": "1", "two.yaml": "1"})
        layout.publish(C, {"one.yaml": "0"})
        plain = surveying.survey

        def late(root: str, boundary: str) -> surveying.Survey:
            if root.endswith(A):
                layout.swap(B)
                (layout.tree(A) / "two.yaml").unlink()
            return plain(root, boundary)

        monkeypatch.setattr(paths, "survey", late)

        async def scene(source: Followed) -> None:
            assert (await source.revision()).commit == C
            layout.swap(A)
            assert (await source.revision()).commit == B

        follow(layout.link, scene)

    def test_the_poll_notices_what_events_do_not(self, tmp_path: Path) -> None:
        layout = GitSyncLayout(tmp_path)
        layout.publish(A, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            await source.revision()
            # The tree is replaced under a link that keeps its target: no event where links are watched.
            aside = tmp_path / "aside"
            layout.tree(A).rename(aside)
            fill(layout.tree(A), {"one.yaml": "changed"})
            assert (await source.revision()).files == {"one.yaml": "changed"}

        follow(layout.link, scene, POLLING)


class TestVolume:
    def test_updates_of_a_config_map(self, tmp_path: Path) -> None:
        volume = KubeletVolume(tmp_path / "policies")
        volume.update({"one.yaml": "1", "two.yaml": "2"})

        async def scene(source: Followed) -> None:
            first = await source.revision()
            assert first.files == {"one.yaml": "1", "two.yaml": "2"}
            assert (first.commit, first.name) == ("", f"sha256:{first.digest}")
            volume.update({"one.yaml": "1b", "three.yaml": "3"})
            assert (await source.revision()).files == {"one.yaml": "1b", "three.yaml": "3"}
            assert await source.quiet()

        follow(volume.root, scene)

    def test_the_commit_that_an_annotation_names(self, tmp_path: Path) -> None:
        volume = KubeletVolume(tmp_path / "policies")
        volume.update({"one.yaml": "1", ".koordpolicy-commit": f"{A}\n"})

        async def scene(source: Followed) -> None:
            assert (await source.revision()).commit == A
            volume.update({"one.yaml": "2", ".koordpolicy-commit": "main"})
            assert (await source.revision()).commit == "", "a name that moves is no commit"

        follow(volume.root, scene)

    def test_a_projected_path_within(self, tmp_path: Path) -> None:
        volume = KubeletVolume(tmp_path / "policies")
        volume.update({"prod/one.yaml": "1", "test/one.yaml": "x"})

        async def scene(source: Followed) -> None:
            assert (await source.revision()).files == {"one.yaml": "1"}
            volume.update({"prod/one.yaml": "2"})
            assert (await source.revision()).files == {"one.yaml": "2"}

        follow(volume.root / "prod", scene)


class TestDirectory:
    def test_what_is_edited_comes_and_goes(self, tmp_path: Path) -> None:
        fill(tmp_path, {"one.yaml": "1", "inner/two.yaml": "2"})

        async def scene(source: Followed) -> None:
            assert (await source.revision()).files == {"inner/two.yaml": "2", "one.yaml": "1"}
            (tmp_path / "one.yaml").write_text("1b")
            assert (await source.revision()).files["one.yaml"] == "1b"
            (tmp_path / "inner").rename(tmp_path / "other")
            assert list((await source.revision()).files) == ["one.yaml", "other/two.yaml"]
            (tmp_path / "other" / "two.yaml").write_text("2b")
            assert (await source.revision()).files["other/two.yaml"] == "2b"
            fill(tmp_path, {"new/deep/er/three.yaml": "3"})
            assert (await source.revision()).files["new/deep/er/three.yaml"] == "3"
            (tmp_path / "one.yaml").unlink()
            assert "one.yaml" not in (await source.revision()).files
            # As most editors save: a new file takes the name of the old one.
            fill(tmp_path, {".four.swp": "4"})
            (tmp_path / ".four.swp").rename(tmp_path / "other" / "two.yaml")
            assert (await source.revision()).files["other/two.yaml"] == "4"

        follow(tmp_path, scene)

    def test_what_is_no_policy_and_what_only_is_touched_is_no_revision(self, tmp_path: Path) -> None:
        fill(tmp_path, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            await source.revision()
            fill(tmp_path, {"readme.md": "x", ".hidden.yaml": "x", ".hidden/a.yaml": "x"})
            os.utime(tmp_path / "one.yaml")
            (tmp_path / "one.yaml").write_text("1")
            assert await source.quiet()

        follow(tmp_path, scene)

    def test_many_files_written_one_after_the_other_are_one_revision(self, tmp_path: Path) -> None:
        fill(tmp_path, {"0.yaml": "0"})

        async def scene(source: Followed) -> None:
            await source.revision()
            for number in range(40):
                fill(tmp_path, {f"{number}.yaml": "new"})
                await asyncio.sleep(0.01)
            assert len((await source.revision()).files) == 40

        given = follow(tmp_path, scene, Timing(quiet=0.3, longest=20, poll=600))
        assert len(given) == 2

    def test_a_tree_that_never_rests_is_read_after_all(self, tmp_path: Path) -> None:
        fill(tmp_path, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            await source.revision()

            async def scribble() -> None:
                number = 0
                while True:
                    number += 1
                    fill(tmp_path, {"log.yaml": f"{number}"})
                    await asyncio.sleep(0.04)

            restless = asyncio.create_task(scribble())
            assert "log.yaml" in (await source.revision()).files
            restless.cancel()
            await asyncio.gather(restless, return_exceptions=True)
            (tmp_path / "log.yaml").write_text("the end")
            while (await source.revision()).files["log.yaml"] != "the end":
                pass

        follow(tmp_path, scene, Timing(quiet=0.1, longest=0.3, poll=600))

    def test_a_tree_that_changes_whenever_it_is_looked_at(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fill(tmp_path, {"one.yaml": "0"})
        plain = surveying.survey
        looks = iter(range(1_000_000))

        def disturbed(root: str, boundary: str) -> surveying.Survey:
            (tmp_path / "one.yaml").write_text(f"{next(looks)}")
            return plain(root, boundary)

        monkeypatch.setattr(paths, "survey", disturbed)

        async def scene(source: Followed) -> None:
            assert (await source.trouble()).reason == "Unsettled"
            monkeypatch.setattr(paths, "survey", plain)
            assert "one.yaml" in (await source.revision()).files

        follow(tmp_path, scene, Timing(quiet=0.001, longest=0.002, poll=0.05))

    def test_a_directory_that_goes_and_comes_back(self, tmp_path: Path) -> None:
        root = tmp_path / "policies"
        fill(root, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            await source.revision()
            shutil.rmtree(root)
            assert (await source.trouble()).reason in {"Missing", "Empty"}
            fill(root, {"one.yaml": "2"})
            while True:
                outcome = await source.next()
                if isinstance(outcome, Revision):
                    break
            assert outcome.files == {"one.yaml": "2"}
            # Replaced in one step, as by a deployment.
            fill(tmp_path / "fresh", {"one.yaml": "3"})
            root.rename(tmp_path / "old")
            (tmp_path / "fresh").rename(root)
            while True:
                outcome = await source.next()
                if isinstance(outcome, Revision) and outcome.files == {"one.yaml": "3"}:
                    break
            (root / "one.yaml").write_text("4")
            assert (await source.revision()).files == {"one.yaml": "4"}

        follow(root, scene)

    def test_an_empty_directory(self, tmp_path: Path) -> None:
        async def scene(source: Followed) -> None:
            expected = f"there is no policy file (*.yaml, *.yml) in `{tmp_path}`"
            assert await source.trouble() == SourceTrouble("Empty", expected)
            fill(tmp_path, {"one.yaml": "1"})
            assert (await source.revision()).files == {"one.yaml": "1"}
            (tmp_path / "one.yaml").unlink()
            assert (await source.trouble()).reason == "Empty"

        follow(tmp_path, scene)

    def test_becomes_a_link_and_a_directory_again(self, tmp_path: Path) -> None:
        root = tmp_path / "policies"
        fill(root, {"one.yaml": "1"})
        layout = GitSyncLayout(tmp_path, "policies")
        source = open_source(root, EVENTS_ONLY)

        async def scene() -> None:
            async with following(source) as followed:
                assert (await followed.revision()).commit == ""
                assert source.shape == "directory"
                root.rename(tmp_path / "aside")
                layout.publish(A, {"one.yaml": "2"})
                await followed.until(A)
                assert source.shape == "link"
                layout.publish(B, {"one.yaml": "3"})
                await followed.until(B)
                layout.link.unlink()
                (tmp_path / "aside").rename(root)
                await followed.until("")
                (root / "one.yaml").write_text("4")
                assert (await followed.revision()).files == {"one.yaml": "4"}

        asyncio.run(scene())

    def test_what_cannot_be_read_is_found_and_healed(self, tmp_path: Path) -> None:
        fill(tmp_path, {"one.yaml": "1"})
        (tmp_path / "two.yaml").write_bytes(b"\xff")

        async def scene(source: Followed) -> None:
            first = await source.revision()
            assert [(one.code, one.span.file) for one in first.found] == [("KP001", "two.yaml")]
            assert first.found.has_errors
            (tmp_path / "two.yaml").write_text("2")
            second = await source.revision()
            assert not second.found.has_errors
            assert second.files == {"one.yaml": "1", "two.yaml": "2"}
            (tmp_path / "two.yaml").unlink()
            (tmp_path / "two.yaml").symlink_to("nowhere")
            assert "leads to nothing" in next(iter((await source.revision()).found)).message
            with (tmp_path / "huge.yaml").open("wb") as file:
                file.truncate(1 << 40)
            assert [one.code for one in (await source.revision()).found] == ["KP004", "KP001"]

        follow(tmp_path, scene)

    def test_a_single_file(self, tmp_path: Path) -> None:
        fill(tmp_path, {"policies.yaml": "1", "other.yaml": "x"})

        async def scene(source: Followed) -> None:
            assert (await source.revision()).files == {"policies.yaml": "1"}
            fill(tmp_path, {"fresh": "2", "other.yaml": "y"})
            (tmp_path / "fresh").rename(tmp_path / "policies.yaml")
            assert (await source.revision()).files == {"policies.yaml": "2"}
            (tmp_path / "policies.yaml").write_text("3")
            assert (await source.revision()).files == {"policies.yaml": "3"}

        follow(tmp_path / "policies.yaml", scene)

    def test_a_file_that_a_link_within_the_work_tree_leads_to(self, tmp_path: Path) -> None:
        fill(tmp_path, {".git/HEAD": "", "base/one.yaml": "1", "prod/readme.md": ""})
        (tmp_path / "prod" / "one.yaml").symlink_to("../base/one.yaml")

        async def scene(source: Followed) -> None:
            assert (await source.revision()).files == {"one.yaml": "1"}
            (tmp_path / "base" / "one.yaml").write_text("2")
            assert (await source.revision()).files == {"one.yaml": "2"}

        follow(tmp_path / "prod", scene)

    def test_only_what_changed_is_read_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fill(tmp_path, {f"{number}.yaml": "1" for number in range(50)})
        read: list[str] = []
        plain = reading._read

        def noted(real: str, shown: str) -> reading._Kept:
            read.append(shown)
            return plain(real, shown)

        monkeypatch.setattr(reading, "_read", noted)

        async def scene(source: Followed) -> None:
            await source.revision()
            assert len(read) == 50
            read.clear()
            before = (tmp_path / "7.yaml").stat()
            (tmp_path / "7.yaml").write_text("2")
            os.utime(
                tmp_path / "7.yaml", ns=(before.st_atime_ns, before.st_mtime_ns)
            )  # as a careful copy does
            assert (await source.revision()).files["7.yaml"] == "2"
            assert read == ["7.yaml"]

        follow(tmp_path, scene)


class Repository:
    """A work tree with git's own program."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self("init", "--quiet", "--initial-branch=main")

    def __call__(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        done = subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, files: dict[str, str] | None = None) -> str:
        fill(self.root, files or {})
        self("add", "--all")
        self("commit", "--quiet", "--allow-empty", "-m", "change")
        return self("rev-parse", "HEAD")


class TestWorkTree:
    def test_a_clean_one_is_its_commit(self, tmp_path: Path) -> None:
        repository = Repository(tmp_path)
        first = repository.commit({"prod/one.yaml": "1", "readme.md": "x"})

        async def scene(source: Followed) -> None:
            assert (await source.revision()).commit == first
            fill(tmp_path, {"prod/one.yaml": "2"})
            assert (await source.revision()).commit == "", "what is not committed has no commit's name"
            second = repository.commit()
            assert (await source.revision()).commit == second, "the same files have a name now"
            empty = repository.commit()
            assert (await source.revision()).commit == empty
            repository("checkout", "--quiet", first)
            back = await source.until(first)
            assert back.files == {"prod/one.yaml": "1"}

        follow(tmp_path, scene, POLLING)

    def test_only_policies_count(self, tmp_path: Path) -> None:
        repository = Repository(tmp_path)
        fill(tmp_path, {".gitignore": "build/\n*.local.yaml\n"})
        first = repository.commit({"prod/one.yaml": "1", "test/one.yaml": "1", "readme.md": "x"})

        async def scene(source: Followed) -> None:
            assert (await source.revision()).commit == first
            fill(tmp_path, {"readme.md": "y", "notes.txt": "new", "test/one.yaml": "2", "build/x.yaml": ""})
            assert await source.quiet()
            fill(tmp_path, {"prod/my.local.yaml": "3"})
            revision = await source.revision()
            assert (revision.commit, len(revision.files)) == ("", 2), "ignored by Git, yet read as a policy"
            (tmp_path / "prod" / "my.local.yaml").unlink()
            assert (await source.revision()).commit == first
            (tmp_path / "prod" / "one.yaml").rename(tmp_path / "prod" / "two.yaml")
            assert (await source.revision()).commit == ""

        follow(tmp_path / "prod", scene, POLLING)

    def test_one_without_a_commit_yet(self, tmp_path: Path) -> None:
        Repository(tmp_path)
        fill(tmp_path, {"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            assert (await source.revision()).commit == ""

        follow(tmp_path, scene)

    def test_waits_while_git_is_at_work(self, tmp_path: Path) -> None:
        repository = Repository(tmp_path)
        repository.commit({"one.yaml": "1"})

        async def scene(source: Followed) -> None:
            await source.revision()
            (tmp_path / ".git" / "index.lock").touch()
            fill(tmp_path, {"one.yaml": "half"})
            assert await source.quiet()
            fill(tmp_path, {"two.yaml": "done"})
            (tmp_path / ".git" / "index.lock").unlink()
            assert (await source.revision()).files == {"one.yaml": "half", "two.yaml": "done"}

        follow(tmp_path, scene, Timing(quiet=0.1, longest=20, poll=0.1))
