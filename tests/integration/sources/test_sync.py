"""Repositories kept in step, with Git's own program at both ends."""

import asyncio
import os
import shutil
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.source import Revision, SourceTrouble
from koordpolicy.source.git.environment import GitCredentials
from koordpolicy.source.git.repository import RepositorySource
from koordpolicy.source.git.sync import Attempt, GitSync, SyncOutcome, SyncSettings
from koordpolicy.source.git.trouble import SyncError
from koordpolicy.source.paths import Timing, open_source
from tests.integration.sources.following import EVENTS_ONLY, following
from tests.integration.sources.repositories import (
    ENVIRONMENT,
    GitServer,
    Upstream,
    commands_that_run,
    git,
    serving,
)
from tests.integration.sources.syncs import fail, sync, syncing, tree


class TestLayout:
    def test_is_that_of_git_sync(self, upstream: Upstream, target: Path) -> None:
        commit = upstream.commit({"one.yaml": "1", "inner/two.yaml": "2"})
        attempt = sync(syncing(upstream.bare, target))
        assert (attempt.outcome, attempt.commit) == (SyncOutcome.SUCCESS, commit)
        link = target / "policies"
        assert str(link.readlink()) == f".worktrees/{commit}", "relative, so that it may be mounted elsewhere"
        assert sorted(path.name for path in target.iterdir()) == [".git", ".worktrees", "policies"]
        assert (link / ".git").read_text() == f"gitdir: ../../.git/worktrees/{commit}\n"
        assert tree(link) == {"inner/two.yaml": "2", "one.yaml": "1"}
        assert git(link, "rev-parse", "HEAD") == commit, "Git itself agrees"
        assert git(link, "status", "--porcelain") == ""
        assert git(link, "log", "--format=%h").count("\n") == 0, "shallow"

    def test_a_link_of_another_name_and_place(self, upstream: Upstream, target: Path, tmp_path: Path) -> None:
        commit = upstream.commit({"one.yaml": "1"})
        sync(syncing(upstream.bare, target, link="live"))
        assert str((target / "live").readlink()) == f".worktrees/{commit}"
        elsewhere = tmp_path / "mount" / "live"
        sync(syncing(upstream.bare, tmp_path / "other", link=str(elsewhere)))
        assert str(elsewhere.readlink()) == f"../other/.worktrees/{commit}"
        assert tree(elsewhere) == {"one.yaml": "1"}

    def test_the_same_commit_again_changes_nothing(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        syncer = syncing(upstream.bare, target)
        sync(syncer)
        before = os.lstat(target / "policies").st_ino, (target / "policies").stat().st_mtime_ns
        assert sync(syncer).outcome == SyncOutcome.NOOP
        assert (os.lstat(target / "policies").st_ino, (target / "policies").stat().st_mtime_ns) == before

    @pytest.mark.parametrize(
        "repository", [".git", "x y", "ext::sh -c 'touch /tmp/x'", "--upload-pack=x", "ftp://h/x"]
    )
    def test_addresses_that_are_none(self, target: Path, repository: str) -> None:
        with pytest.raises(ValueError, match=r"address|supported"):
            syncing(repository, target)

    @pytest.mark.parametrize(
        "setting",
        [{"ref": ref} for ref in ["-x", "a..b", "a b", "a:b", "a^", "", "x.lock", "@{1}", "*"]]
        + [{"paths": (path,)} for path in ["..", "a/../b", "", ".git", "a\nb"]]
        + [{"link": link} for link in [".git", "x/.git/y", ".worktrees", "tmp-link", ".."]],
        ids=str,
    )
    def test_settings_that_cannot_work(
        self, upstream: Upstream, target: Path, setting: dict[str, Any]
    ) -> None:
        with pytest.raises(ValueError, match="is no"):
            syncing(upstream.bare, target, **setting)

    def test_what_is_in_the_way_stays(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        (target / "policies").mkdir(parents=True)
        assert fail(syncing(upstream.bare, target)).reason == "LinkInTheWay"
        assert (target / "policies").is_dir()

    def test_somebody_elses_repository_is_left_alone(self, upstream: Upstream) -> None:
        upstream.commit({"one.yaml": "1"})
        before = tree(upstream.work)
        assert fail(syncing(upstream.bare, upstream.work)).reason == "DirectoryUnusable"
        assert tree(upstream.work) == before

    def test_one_process_at_a_time(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        first = syncing(upstream.bare, target)
        sync(first)
        assert fail(syncing(upstream.bare, target)).reason == "Busy"
        first.close()
        assert sync(syncing(upstream.bare, target)).outcome == SyncOutcome.NOOP


class TestRefs:
    def test_branch_tag_and_head(self, upstream: Upstream, target: Path) -> None:
        first = upstream.commit({"one.yaml": "1"})
        git(upstream.work, "tag", "--annotate", "-m", "first", "v1")
        git(upstream.work, "tag", "light")
        git(upstream.work, "push", "--quiet", "origin", "v1", "light")
        second = upstream.commit({"one.yaml": "2"})
        for ref, commit in {
            "v1": first,
            "light": first,
            "refs/tags/v1": first,
            "main": second,
            "refs/heads/main": second,
            "HEAD": second,
        }.items():
            syncer = syncing(upstream.bare, target, ref=ref)
            assert sync(syncer).commit == commit, ref
            syncer.close()

    def test_a_tag_that_moves(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        git(upstream.work, "tag", "live")
        git(upstream.work, "push", "--quiet", "origin", "live")
        syncer = syncing(upstream.bare, target, ref="live")
        sync(syncer)
        second = upstream.commit({"one.yaml": "2"})
        git(upstream.work, "tag", "--force", "live")
        git(upstream.work, "push", "--quiet", "--force", "origin", "live")
        assert sync(syncer).commit == second

    def test_a_whole_commit_is_fetched_once(
        self, upstream: Upstream, server: GitServer, target: Path
    ) -> None:
        first = upstream.commit({"one.yaml": "1"})
        upstream.commit({"one.yaml": "2"})
        syncer = syncing(server.url(), target, ref=first)
        assert sync(syncer).commit == first
        asked = server.requests
        assert sync(syncer).outcome == SyncOutcome.NOOP
        assert server.requests == asked, "nothing can have changed"

    def test_a_commit_of_a_server_that_gives_tips_only(self, upstream: Upstream, target: Path) -> None:
        first = upstream.commit({"one.yaml": "1"})
        upstream.commit({"one.yaml": "2"})
        environment = {
            **ENVIRONMENT,
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "protocol.version",
            "GIT_CONFIG_VALUE_0": "0",
        }
        settings = SyncSettings(str(upstream.bare), target, ref=first)
        syncer = GitSync(settings, environment=environment, jitter=lambda: 0.5, clock=time.time)
        assert sync(syncer).commit == first
        assert tree(target / "policies") == {"one.yaml": "1"}

    @pytest.mark.parametrize("ref", ["nowhere", "0" * 40])
    def test_what_is_not_there(self, upstream: Upstream, target: Path, ref: str) -> None:
        upstream.commit({"one.yaml": "1"})
        error = fail(syncing(upstream.bare, target, ref=ref))
        assert error.reason == "RefNotFound"
        assert ref in error.message

    def test_a_tag_on_something_that_is_no_commit(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        git(upstream.work, "tag", "blob", git(upstream.work, "rev-parse", "HEAD:one.yaml"))
        git(upstream.work, "push", "--quiet", "origin", "blob")
        assert "names no commit" in fail(syncing(upstream.bare, target, ref="blob")).message

    def test_a_repository_with_the_longer_hash(self, tmp_path: Path, target: Path) -> None:
        upstream = Upstream(tmp_path / "long", object_format="sha256")
        commit = upstream.commit({"one.yaml": "1"})
        assert len(commit) == 64
        syncer = syncing(upstream.bare, target)
        assert sync(syncer).commit == commit
        assert tree(target / "policies") == {"one.yaml": "1"}


class TestChanges:
    def test_a_force_push_is_followed(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        syncer = syncing(upstream.bare, target)
        second = upstream.commit({"two.yaml": "2"})
        sync(syncer)
        git(upstream.work, "reset", "--quiet", "--hard", "HEAD~1")
        rewritten = upstream.commit({"three.yaml": "3"})
        attempt = sync(syncer)
        assert (attempt.before, attempt.commit) == (second, rewritten)
        assert tree(target / "policies") == {"one.yaml": "1", "three.yaml": "3"}
        git(upstream.work, "reset", "--quiet", "--hard", second)
        upstream.push()
        assert sync(syncer).commit == second, "and back, to a tree that is still there"
        assert tree(target / "policies") == {"one.yaml": "1", "two.yaml": "2"}

    def test_a_deleted_branch_is_reported_and_the_last_tree_stays(
        self, upstream: Upstream, target: Path
    ) -> None:
        commit = upstream.commit({"one.yaml": "1"})
        syncer = syncing(upstream.bare, target)
        sync(syncer)
        git(upstream.bare, "update-ref", "-d", "refs/heads/main")
        error = fail(syncer)
        assert (error.reason, error.message) == ("RefNotFound", f"`{upstream.bare}` has no `main` (any more)")
        assert tree(target / "policies") == {"one.yaml": "1"}
        assert (syncer.state.commit, syncer.state.failures) == (commit, 1)
        upstream.push()
        assert sync(syncer).outcome == SyncOutcome.NOOP
        assert (syncer.state.trouble, syncer.state.failures) == (None, 0)

    def test_a_repository_that_goes_and_comes_back(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        with serving(upstream.bare.parent) as server:
            syncer = syncing(server.url(), target)
            sync(syncer)
            server.broken = True
            assert "error of its own" in fail(syncer).message
            port = server.port
        error = fail(syncer)
        assert error.reason == "Unreachable"
        assert error.message.startswith(f"`http://127.0.0.1:{port}/policies.git` cannot be reached")
        assert tree(target / "policies") == {"one.yaml": "1"}
        second = upstream.commit({"one.yaml": "2"})
        with serving(upstream.bare.parent, port):
            assert sync(syncer).commit == second

    def test_old_trees_are_collected_when_they_are_stale(self, upstream: Upstream, target: Path) -> None:
        now = time.time()
        clock = {"now": now}
        upstream.commit({"one.yaml": "1"})
        settings = SyncSettings(str(upstream.bare), target, ref="main", stale_after=60)
        syncer = GitSync(settings, environment=ENVIRONMENT, jitter=lambda: 0, clock=lambda: clock["now"])
        first = sync(syncer).commit
        second = upstream.commit({"one.yaml": "2"})
        assert sync(syncer).commit == second
        trees = target / ".worktrees"
        swapped = (trees / first).stat().st_mtime
        assert swapped >= now, "stale from the swap on"
        clock["now"] = swapped + 59
        sync(syncer)
        assert {path.name for path in trees.iterdir()} == {first, second}
        clock["now"] += 2
        sync(syncer)
        assert {path.name for path in trees.iterdir()} == {second}
        assert {path.name for path in (target / ".git" / "worktrees").iterdir()} == {second}

    def test_a_hundred_commits_in_quick_succession(
        self, upstream: Upstream, server: GitServer, target: Path
    ) -> None:
        upstream.commit({"one.yaml": "0"})
        syncer = syncing(server.url(), target, period=60, pause=0.01, stale_after=0)

        async def scene() -> list[Revision]:
            async with following(RepositorySource(syncer)) as followed:
                await followed.revision()
                last = ""
                for number in range(1, 101):
                    last = await asyncio.to_thread(upstream.commit, {"one.yaml": str(number)})
                    syncer.trigger()
                await followed.until(last)
            assert [one for one in followed.all if isinstance(one, SourceTrouble)] == []
            return [one for one in followed.all if isinstance(one, Revision)]

        revisions = asyncio.run(scene())
        numbers = [int(revision.files["one.yaml"]) for revision in revisions]
        assert numbers == sorted(set(numbers)), "each once, none out of order"
        assert numbers[-1] == 100


class TestParts:
    def test_only_the_paths_that_are_wanted(self, upstream: Upstream, target: Path) -> None:
        files = {
            "prod/a.yaml": "a",
            "prod/deep/b.yaml": "b",
            "test/a.yaml": "x",
            "base.yaml": "c",
            "we*rd/a.yaml": "w",
        }
        upstream.commit({**files, "weird/a.yaml": "x", "inner/prod/a.yaml": "x"})
        syncer = syncing(upstream.bare, target, paths=("prod/", "base.yaml", "we*rd"))
        sync(syncer)
        wanted = {name: text for name, text in files.items() if text != "x"}
        assert tree(target / "policies") == wanted
        upstream.commit({"prod/a.yaml": "a2", "test/a.yaml": "y"})
        sync(syncer)
        assert tree(target / "policies") == {**wanted, "prod/a.yaml": "a2"}
        syncer.close()
        fewer = syncing(upstream.bare, target, paths=("prod",))
        assert sync(fewer).outcome == SyncOutcome.NOOP
        assert sorted(tree(target / "policies")) == ["prod/a.yaml", "prod/deep/b.yaml"]

    def test_a_path_that_goes_is_reported(self, upstream: Upstream, target: Path) -> None:
        first = upstream.commit({"prod/a.yaml": "a", "b.yaml": "b"})
        syncer = syncing(upstream.bare, target, paths=("prod",))
        sync(syncer)
        git(upstream.work, "rm", "-r", "--quiet", "prod")
        upstream.commit({})
        assert fail(syncer).reason == "PathNotFound"
        assert str((target / "policies").readlink()) == f".worktrees/{first}"

    def test_submodules_only_when_they_are_wanted(
        self, upstream: Upstream, tmp_path: Path, target: Path
    ) -> None:
        part = Upstream(tmp_path / "part", "part.git")
        part.commit({"part.yaml": "p"})
        git(
            upstream.work,
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            str(part.bare),
            "part",
        )
        upstream.commit({"one.yaml": "1"})
        without = syncing(upstream.bare, target)
        sync(without)
        assert "part/part.yaml" not in tree(target / "policies")
        sync(syncing(upstream.bare, tmp_path / "whole", submodules=True))
        assert tree(tmp_path / "whole" / "policies")["part/part.yaml"] == "p"


class TestAfterACrash:
    def published(self, upstream: Upstream, target: Path) -> str:
        upstream.commit({"one.yaml": "1"})
        syncer = syncing(upstream.bare, target)
        sync(syncer)
        syncer.close()
        return upstream.commit({"one.yaml": "2", "two.yaml": "2"})

    def test_between_the_tree_and_the_swap(self, upstream: Upstream, target: Path) -> None:
        second = self.published(upstream, target)
        half = target / ".worktrees" / second
        half.mkdir()
        (half / "one.yaml").write_text("hal")
        (target / "tmp-link").symlink_to(f".worktrees/{second}")
        (target / ".git" / "index.lock").touch()
        (target / ".git" / "shallow.lock").touch()
        assert sync(syncing(upstream.bare, target)).commit == second
        assert tree(target / "policies") == {"one.yaml": "2", "two.yaml": "2"}
        assert not os.path.lexists(target / "tmp-link")

    def test_killed_while_it_works(self, upstream: Upstream, target: Path) -> None:
        second = self.published(upstream, target)

        async def killed() -> None:
            syncer = syncing(upstream.bare, target)
            working = asyncio.create_task(syncer.sync())
            await asyncio.sleep(0.03)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            syncer.close()

        asyncio.run(killed())
        assert sync(syncing(upstream.bare, target)).commit == second
        assert tree(target / "policies") == {"one.yaml": "2", "two.yaml": "2"}

    @pytest.mark.parametrize("when", ["before the process began", "while it runs"])
    @pytest.mark.parametrize("lost", [(), ("gitdir",), ("gitdir", "HEAD", "commondir")], ids=len)
    def test_git_killed_while_it_adds_a_tree(
        self, upstream: Upstream, target: Path, when: str, lost: tuple[str, ...]
    ) -> None:
        wanted = self.published(upstream, target)
        syncer = syncing(upstream.bare, target)
        if when == "while it runs":
            sync(syncer)
            wanted = upstream.commit({"one.yaml": "3", "two.yaml": "3"})
        trees = target / ".git" / "worktrees"
        half = trees / wanted
        shutil.copytree(next(trees.iterdir()), half)
        (half / "gitdir").write_text(f"{target}/.worktrees/{wanted}/.git\n")
        (half / "locked").write_text("initializing\n")
        for name in lost:
            (half / name).unlink()
        assert sync(syncer).commit == wanted
        assert set(tree(target / "policies")) == {"one.yaml", "two.yaml"}
        assert sorted(one.name for one in trees.glob(f"{wanted}*")) == [wanted]
        assert not (half / "locked").exists()

    def test_a_published_tree_that_was_damaged(self, upstream: Upstream, target: Path) -> None:
        second = self.published(upstream, target)
        syncer = syncing(upstream.bare, target)
        sync(syncer)
        syncer.close()
        (target / "policies" / "one.yaml").write_text("")
        (target / "policies" / "stray.yaml").write_text("")
        again = syncing(upstream.bare, target)
        assert sync(again).commit == second
        assert tree(target / "policies") == {"one.yaml": "2", "two.yaml": "2"}

    @pytest.mark.parametrize("damage", ["objects", "HEAD", "config", "everything", "shallow", "worktrees"])
    def test_a_store_that_was_damaged(self, upstream: Upstream, target: Path, damage: str) -> None:
        second = self.published(upstream, target)
        store = target / ".git"
        if damage == "everything":
            shutil.rmtree(store)
        elif (store / damage).is_dir():
            shutil.rmtree(store / damage)
        else:
            (store / damage).write_text("\0\0\0\0")
        assert sync(syncing(upstream.bare, target)).commit == second
        assert tree(target / "policies") == {"one.yaml": "2", "two.yaml": "2"}

    def test_empty_objects(self, upstream: Upstream, target: Path) -> None:
        """What a file system may leave after the power was gone."""
        second = self.published(upstream, target)
        for path in (target / ".git" / "objects").rglob("*"):
            if path.is_file():
                path.chmod(0o644)
                path.write_bytes(b"")
        assert sync(syncing(upstream.bare, target)).commit == second
        assert tree(target / "policies") == {"one.yaml": "2", "two.yaml": "2"}


class TestRunning:
    def test_as_a_source(self, upstream: Upstream, target: Path) -> None:
        first = upstream.commit({"prod/one.yaml": "1", "test/one.yaml": "x"})
        syncer = syncing(upstream.bare, target, period=60, pause=0.01)
        source = RepositorySource(syncer, "prod")
        assert source.origin == f"{upstream.bare}@main:prod"

        async def scene() -> None:
            async with following(source) as followed:
                revision = await followed.revision()
                assert (revision.commit, revision.files) == (first, {"one.yaml": "1"})
                second = await asyncio.to_thread(upstream.commit, {"prod/one.yaml": "2"})
                syncer.trigger()
                assert (await followed.revision()).commit == second
                syncer.trigger()
                assert await followed.quiet(), "nothing new"
                git(upstream.bare, "update-ref", "-d", "refs/heads/main")
                syncer.trigger()
                assert (await followed.trouble()).reason == "RefNotFound"
                syncer.trigger()
                assert await followed.quiet(), "a trouble is told once"
                await asyncio.to_thread(upstream.push)
                syncer.trigger()
                assert (await followed.revision()).commit == second, "all is well again"
                git(upstream.work, "rm", "-r", "--quiet", "prod")
                await asyncio.to_thread(upstream.commit, {})
                syncer.trigger()
                assert (await followed.trouble()).reason == "Missing"

        asyncio.run(scene())

    def test_what_was_published_is_given_while_the_repository_is_away(
        self, upstream: Upstream, target: Path
    ) -> None:
        commit = upstream.commit({"one.yaml": "1"})
        first = syncing(upstream.bare, target)
        sync(first)
        first.close()
        upstream.bare.rename(upstream.bare.with_name("away"))

        async def scene() -> None:
            async with following(RepositorySource(syncing(upstream.bare, target))) as followed:
                assert (await followed.revision()).commit == commit
                assert (await followed.trouble()).reason == "RepositoryNotFound"

        asyncio.run(scene())

    def test_others_see_the_swap_as_that_of_git_sync(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        syncer = syncing(upstream.bare, target, stale_after=0)

        async def scene() -> None:
            async with following(open_source(target / "policies", EVENTS_ONLY)) as followed:
                assert (await followed.trouble()).reason == "Missing"
                for number in range(5):
                    commit = await asyncio.to_thread(upstream.commit, {"one.yaml": str(number)})
                    await syncer.sync()
                    assert (await followed.revision()).commit == commit
            assert all(isinstance(one, Revision) for one in followed.all[1:])

        asyncio.run(scene())

    def test_waits_grow_with_failures_and_spread(self, upstream: Upstream, target: Path) -> None:
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            await asyncio.sleep(0)

        settings = SyncSettings(
            str(upstream.bare), target, ref="nowhere", period=10, longest_wait=60, pause=0
        )
        syncer = GitSync(settings, environment=ENVIRONMENT, jitter=lambda: 0.5, clock=time.time, sleep=sleep)
        with pytest.raises(SyncError):
            asyncio.run(syncer.run(max_failures=4))
        assert [wait for wait in waits if wait] == [7.5, 15.0, 30.0, 45.0]
        assert syncer.state.failures == 5

    def test_many_triggers_are_one(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        syncer = syncing(upstream.bare, target, period=60, pause=0.05)
        attempts: asyncio.Queue[Attempt] = asyncio.Queue()
        syncer.subscribe(attempts.put_nowait)

        async def scene() -> list[SyncOutcome]:
            running = asyncio.create_task(syncer.run())
            first = await attempts.get()
            for _ in range(50):
                syncer.trigger()
            second = await attempts.get()
            await asyncio.sleep(0.3)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return [
                first.outcome,
                second.outcome,
                *(attempts.get_nowait().outcome for _ in range(attempts.qsize())),
            ]

        assert asyncio.run(scene()) == [SyncOutcome.SUCCESS, SyncOutcome.NOOP]

    def test_stopped_while_git_runs_leaves_no_process(self, target: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"http://127.0.0.1:{silent.getsockname()[1]}/policies.git"

            async def scene() -> None:
                running = asyncio.create_task(syncing(address, target).run())
                connection, _ = await asyncio.to_thread(silent.accept)  # Git is waiting for an answer now
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                connection.close()

            asyncio.run(scene())
            assert address not in commands_that_run()


def test_settings_are_plain_values(tmp_path: Path) -> None:
    settings = SyncSettings("https://host/x.git", tmp_path)
    assert replace(settings, ref="v1").credentials == GitCredentials()
    assert Timing() == Timing(quiet=0.2, longest=2.0, poll=5.0)
