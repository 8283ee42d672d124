"""Repositories that would fill the disk: refused while they are only a list, or while they come."""

import asyncio
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.source.git.size import SyncLimits
from koordpolicy.source.git.sync import GitSync
from koordpolicy.source.limits import CHECKED_OUT
from tests.integration.sources.repositories import ENVIRONMENT, Upstream, git
from tests.integration.sources.syncs import fail, sync, syncing, tree


def plumb(bare: Path, *arguments: str, given: bytes = b"") -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=bare, env=ENVIRONMENT, input=given, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def blob(bare: Path, content: bytes) -> str:
    return plumb(bare, "hash-object", "-w", "--stdin", given=content)


def tree_of(bare: Path, *entries: tuple[str, str, str, bytes]) -> str:
    """A tree object from (mode, type, object, name)."""
    lines = [f"{mode} {kind} {oid}\t".encode() + name + b"\0" for mode, kind, oid, name in entries]
    return plumb(bare, "mktree", "-z", "--missing", given=b"".join(lines))


def commit_of(bare: Path, top: str) -> str:
    commit = plumb(bare, "commit-tree", top, "-m", "hostile")
    plumb(bare, "update-ref", "refs/heads/main", commit)
    return commit


def file(oid: str, name: str) -> tuple[str, str, str, bytes]:
    return "100644", "blob", oid, name.encode()


def directory(oid: str, name: str) -> tuple[str, str, str, bytes]:
    return "040000", "tree", oid, name.encode()


def nested(bare: Path, levels: int, entries: int, leaf: str) -> str:
    """So many levels of trees, each with that many times the one below: entries to the power of levels."""
    top = tree_of(bare, *(file(leaf, f"{number}.yaml") for number in range(entries)))
    for _ in range(levels - 1):
        top = tree_of(bare, *(directory(top, f"{number}") for number in range(entries)))
    return top


def written(target: Path) -> int:
    """Bytes on the disk below a directory."""
    return sum(
        Path(place, name).lstat().st_blocks * 512 for place, _, names in os.walk(target) for name in names
    )


@pytest.fixture
def good(upstream: Upstream, target: Path) -> GitSync:
    """A sync that has published something good before."""
    upstream.commit({"one.yaml": "1"})
    syncer = syncing(upstream.bare, target)
    sync(syncer)
    return syncer


def refused(syncer: GitSync, target: Path) -> str:
    """The message of a refusal that left everything as it was, soon and with next to nothing written."""
    began = time.monotonic()
    error = fail(syncer)
    assert error.reason == "TooLarge"
    assert time.monotonic() - began < 60
    assert written(target) < 20_000_000
    assert tree(target / "policies") == {"one.yaml": "1"}
    return error.message


class TestTrees:
    def test_of_few_bytes_that_unfold_to_gigabytes(
        self, upstream: Upstream, target: Path, good: GitSync
    ) -> None:
        """A megabyte of nothing, 3,100 times: 3 MB of repository were 3.1 GB on the disk."""
        same = blob(upstream.bare, bytes(1_000_000))
        top = tree_of(upstream.bare, *(file(same, f"{number:04}.bin") for number in range(3_100)))
        commit = commit_of(upstream.bare, top)
        assert refused(good, target) == (
            f"commit {commit} has files of more bytes together than are permitted, more than 536,870,912"
        )

    def test_of_ten_million_files(self, upstream: Upstream, target: Path, good: GitSync) -> None:
        commit = commit_of(upstream.bare, nested(upstream.bare, 7, 10, blob(upstream.bare, b"a: 1\n")))
        assert refused(good, target) == (
            f"commit {commit} has more files than are permitted, more than 100,000"
        )

    def test_of_ten_million_directories_without_files(
        self, upstream: Upstream, target: Path, good: GitSync
    ) -> None:
        top = tree_of(upstream.bare)
        for _ in range(7):
            top = tree_of(upstream.bare, *(directory(top, f"{number}") for number in range(10)))
        commit_of(upstream.bare, top)
        assert "has more files and directories than are permitted, more than 1,000,000" in refused(
            good, target
        )

    def test_that_nest_without_end(self, upstream: Upstream, target: Path, good: GitSync) -> None:
        top = tree_of(upstream.bare, file(blob(upstream.bare, b""), "a.yaml"))
        for _ in range(300):
            top = tree_of(upstream.bare, directory(top, "d"))
        commit_of(upstream.bare, top)
        assert "has directories 65 deep" in refused(good, target)

    def test_with_names_without_end(self, upstream: Upstream, target: Path, good: GitSync) -> None:
        commit_of(
            upstream.bare, tree_of(upstream.bare, file(blob(upstream.bare, b""), "\x1b" + "n" * 200_000))
        )
        message = refused(good, target)
        assert "has a path of too many bytes, `\\x1bnnn" in message
        assert len(message) < 500

    def test_with_one_large_file(self, upstream: Upstream, target: Path, good: GitSync) -> None:
        commit_of(upstream.bare, tree_of(upstream.bare, file(blob(upstream.bare, bytes(70 << 20)), "zeros")))
        assert "has a file of 73,400,320 bytes, `zeros`, more than 67,108,864" in refused(good, target)

    def test_are_published_when_the_limits_permit_them(self, upstream: Upstream, target: Path) -> None:
        same = blob(upstream.bare, bytes(100_000))
        top = tree_of(upstream.bare, *(file(same, f"{number}.bin") for number in range(20)))
        commit = commit_of(upstream.bare, top)
        bound = SyncLimits(replace(CHECKED_OUT, bytes=1_999_999), flag="--limit")
        strict = syncing(upstream.bare, target, limits=bound)
        error = fail(strict)
        strict.close()
        assert error.message.endswith("more than 1,999,999; `--limit bytes=N` permits more")
        exact = SyncLimits(replace(CHECKED_OUT, bytes=2_000_000, files=20, entries=20, file_bytes=100_000))
        assert sync(syncing(upstream.bare, target, limits=exact)).commit == commit

    def test_of_which_only_a_part_is_wanted(self, upstream: Upstream, target: Path) -> None:
        """What else stands in a repository counts only where Git's index has it."""
        commit = upstream.commit(
            {"policies/a.yaml": "1", **{f"else/{number}": "x" * 1_000 for number in range(50)}}
        )
        bound = SyncLimits(replace(CHECKED_OUT, files=1, bytes=1))
        assert sync(syncing(upstream.bare, target, limits=bound, paths=("policies",))).commit == commit
        assert tree(target / "policies") == {"policies/a.yaml": "1"}
        assert "more than 1" in fail(syncing(upstream.bare, target.with_name("whole"), limits=bound)).message

    def test_are_judged_once(self, upstream: Upstream, target: Path, good: GitSync) -> None:
        """A good commit after a refused one is published, and the refused one costs little each time."""
        commit_of(upstream.bare, nested(upstream.bare, 7, 10, blob(upstream.bare, b"")))
        for _ in range(3):
            refused(good, target)
        back = upstream.commit({"one.yaml": "2"})
        assert sync(good).commit == back


class TestFetches:
    def test_that_bring_too_much_leave_nothing(self, upstream: Upstream, target: Path) -> None:
        upstream.commit({"one.yaml": "1"})
        syncer = syncing(upstream.bare, target, limits=SyncLimits(fetch=2 << 20, flag="--limit"))
        sync(syncer)
        noise = blob(upstream.bare, os.urandom(30 << 20))
        commit_of(upstream.bare, tree_of(upstream.bare, file(noise, "noise")))
        for _ in range(2):
            message = refused(syncer, target)
            assert message == (
                f"`{upstream.bare}` sends more bytes than are permitted, more than 2,097,152; "
                "`--limit fetch=N` permits more"
            )
            assert written(target) < 2 << 20
        back = upstream.commit({"one.yaml": "2"})
        assert sync(syncer).commit == back

    def test_that_bring_a_little_each_time_do_not_add_up(self, upstream: Upstream, target: Path) -> None:
        syncer = syncing(upstream.bare, target, limits=SyncLimits(fetch=3 << 20), stale_after=0)
        for number in range(8):
            noise = blob(upstream.bare, os.urandom(1 << 20))
            commit = commit_of(upstream.bare, tree_of(upstream.bare, file(noise, f"{number}")))
            assert sync(syncer).commit == commit
            assert written(target / ".git" / "objects") < 7 << 20

    def test_that_were_stopped_leave_no_parts(self, upstream: Upstream, target: Path, good: GitSync) -> None:
        objects = target / ".git" / "objects"
        (objects / "pack").mkdir(exist_ok=True)
        (objects / "pack" / "tmp_pack_X").write_bytes(bytes(1000))
        good.close()
        upstream.commit({"one.yaml": "2"})
        sync(syncing(upstream.bare, target))
        assert not (objects / "pack" / "tmp_pack_X").exists()


class TestTheDisk:
    def test_that_has_no_room(
        self, upstream: Upstream, target: Path, good: GitSync, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Told before it is full: a disk with less room than stays free for others."""
        import koordpolicy.source.git.size as sizing  # noqa: PLC0415

        monkeypatch.setattr(sizing, "_RESERVE", 1 << 62)
        monkeypatch.setattr(sizing, "_RESERVED_SHARE", 1)
        upstream.commit({"one.yaml": "2"})
        error = fail(good)
        assert error.reason == "DiskFull"
        assert "is nearly full" in error.message
        assert tree(target / "policies") == {"one.yaml": "1"}


class TestLinks:
    @pytest.mark.parametrize("leads", ["/bin", "nowhere", f"elsewhere/{'a' * 40}"])
    def test_of_others_are_not_replaced(
        self, upstream: Upstream, target: Path, tmp_path: Path, leads: str
    ) -> None:
        upstream.commit({"one.yaml": "1"})
        link = tmp_path / "important"
        link.symlink_to(leads)
        syncer = syncing(upstream.bare, target, link=str(link))
        error = fail(syncer)
        assert (error.reason, str(link.readlink())) == ("LinkInTheWay", leads)
        link.unlink()
        sync(syncer)
        assert tree(link) == {"one.yaml": "1"}

    def test_of_others_are_not_removed(self, upstream: Upstream, target: Path, tmp_path: Path) -> None:
        """A link beside ours that only has the name of what is swapped is not ours."""
        upstream.commit({"one.yaml": "1"})
        beside = tmp_path / "tmp-link"
        beside.symlink_to("/bin")
        assert fail(syncing(upstream.bare, target, link=str(tmp_path / "live"))).reason == "LinkNotSwapped"
        assert str(beside.readlink()) == "/bin"


class TestFlags:
    def test_raise_the_limits(
        self, upstream: Upstream, target: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        upstream.commit({"one.yaml": "x" * 5_000, "two.yaml": "y"})
        words = ["sync", "--repo", str(upstream.bare), "--dir", str(target), "--ref", "main", "--once"]
        assert main([*words, "--limit", "bytes=4Ki"]) == 2
        assert "more than 4,096; `--limit bytes=N` permits more" in capfd.readouterr().err
        assert main([*words, "--limit", "bytes=5001", "--limit", "files=2"]) == 0

    @pytest.mark.parametrize("given", ["bytes", "bytes=", "bytes=-1", "bytes=much", "words=3", "files=0"])
    def test_that_are_none(self, given: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main(["sync", "--repo", "x", "--dir", "y", "--limit", given])
        assert ended.value.code == 2
        assert "--limit" in capsys.readouterr().err


def test_submodules_count(upstream: Upstream, target: Path, tmp_path: Path) -> None:
    inner = Upstream(tmp_path / "inner", "inner.git")
    inner.commit({f"{number}.yaml": "x" * 2_000 for number in range(300)})
    git(upstream.work, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.bare), "inner")
    upstream.commit({"one.yaml": "1"})
    bound = SyncLimits(replace(CHECKED_OUT, entries=100))
    strict = syncing(upstream.bare, target, submodules=True, limits=bound)
    error = fail(strict)
    strict.close()
    assert error.reason == "TooLarge"
    assert "submodules" in error.message
    assert asyncio.run(syncing(upstream.bare, target, submodules=True).sync()).commit
