"""Files whose names are no plain text: refused by name, in every way to policies, and never more than that."""

import asyncio
import io
import json
import os
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.escaping import is_plain
from koordpolicy.diagnostics.render import RENDERERS
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.lastgood import LastGood, StoreError
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.source import read_tree
from koordpolicy.source.git.repository import RepositorySource
from koordpolicy.source.paths import open_source
from koordpolicy.source.revision import digest_of
from tests.integration.sources.following import POLLING, fill, following
from tests.integration.sources.repositories import Upstream
from tests.integration.sources.syncs import syncing
from tests.unit.runtime.scenes import running, tree, until

NAMES = {
    b"pol\xff.yaml": r"pol\xff.yaml",
    b"esc\x1b[2J.yaml": r"esc\x1b[2J.yaml",
    b"line\nbreak.yml": r"line\nbreak.yml",
    b"csi\xc2\x9b1m.yaml": r"csi\x9b1m.yaml",
    "gpj\u202elmay.yaml".encode(): r"gpj\u202elmay.yaml",
    b"dir\xfe/inner.yaml": r"dir\xfe/inner.yaml",
    "no\ufffe.yaml".encode(): r"no\ufffe.yaml",
}
MESSAGE = "the name `{}` is not plain text"


def put(directory: Path, name: bytes) -> Path:
    """A file of such a name."""
    file = directory / os.fsdecode(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("# nothing\n")
    return file


def told(found: Diagnostics) -> list[tuple[str, str, str]]:
    return [(one.code, one.span.file, one.message) for one in found]


def test_each_is_a_finding_and_the_others_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        put(tmp_path, name)
    fill(tmp_path, {"good ü.yaml": "a"})
    (tmp_path / "good\N{NO-BREAK SPACE}.yaml").write_text("b")
    read = read_tree(["."])
    assert read.files == {"good ü.yaml": "a", "good\N{NO-BREAK SPACE}.yaml": "b"}
    assert told(read.found) == [("KP001", shown, MESSAGE.format(shown)) for shown in sorted(NAMES.values())]


def test_names_of_what_is_no_policy_are_nobodys_concern(tmp_path: Path) -> None:
    put(tmp_path, b"pol\xff.txt")
    put(tmp_path, b"dir\xff/readme")
    fill(tmp_path, {"a.yaml": "a"})
    assert told(read_tree([tmp_path]).found) == []


def test_what_is_named_outright(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path, b"pol\xff.yaml")
    name = os.fsdecode(b"pol\xff.yaml")
    assert told(read_tree([name, os.fsdecode(b"no\xff")]).found) == [
        ("KP001", r"no\xff", r"`no\xff` does not exist"),
        ("KP001", r"pol\xff.yaml", MESSAGE.format(r"pol\xff.yaml/pol\xff.yaml")),
    ]


@pytest.mark.parametrize("format", RENDERERS)
def test_every_format_reports_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path, b"pol\xff.yaml")
    fill(tmp_path, tree(1000))
    out = io.StringIO()
    assert main(["check", ".", "-o", format], Terminal(out, io.StringIO())) == 1
    assert r"pol\xff" in out.getvalue() or r"pol\\xff" in out.getvalue()
    out.getvalue().encode()
    if format in {"json", "sarif", "gitlab"}:
        json.loads(out.getvalue())


@pytest.mark.parametrize(
    "words", [("check",), ("test",), ("fmt", "--check"), ("graph",), ("explain", "CPUSuppress.target", "-p")]
)
def test_every_command_ends_well(tmp_path: Path, words: tuple[str, ...]) -> None:
    put(tmp_path, b"pol\xff.yaml")
    err = io.StringIO()
    assert main([*words, str(tmp_path)], Terminal(io.StringIO(), err)) in {1, 2}
    assert r"pol\xff.yaml" in err.getvalue()


class TestSources:
    def test_a_directory(self, tmp_path: Path) -> None:
        bad = put(tmp_path, b"pol\xff.yaml")
        fill(tmp_path, {"a.yaml": "1"})

        async def play() -> None:
            async with following(open_source(tmp_path, POLLING)) as source:
                first = await source.revision()
                assert told(first.found) == [("KP001", r"pol\xff.yaml", MESSAGE.format(r"pol\xff.yaml"))]
                bad.unlink()
                assert (await source.revision()).found == Diagnostics()

        asyncio.run(play())

    def test_a_directory_of_such_a_name_that_cannot_be_watched(self, tmp_path: Path) -> None:
        put(tmp_path, b"dir\xff/a.yaml")
        fill(tmp_path, {"a.yaml": "1"})

        async def play() -> None:
            async with following(open_source(tmp_path, POLLING)) as source:
                assert [one.span.file for one in (await source.revision()).found] == [r"dir\xff/a.yaml"]
                await asyncio.sleep(0.3)
                fill(tmp_path, {"a.yaml": "2"})
                assert (await source.revision()).files == {"a.yaml": "2"}

        asyncio.run(play())

    def test_a_repository(self, upstream: Upstream, target: Path) -> None:
        put(upstream.work, b"pol\xff.yaml")
        bad = upstream.commit({"a.yaml": "1"})

        async def play() -> None:
            source = RepositorySource(syncing(upstream.bare, target, period=60, pause=0.01))
            async with following(source) as followed:
                first = await followed.revision()
                assert (first.commit, first.files) == (bad, {"a.yaml": "1"})
                assert told(first.found) == [("KP001", r"pol\xff.yaml", MESSAGE.format(r"pol\xff.yaml"))]

        asyncio.run(play())


def test_a_live_process_rejects_the_revision_and_goes_on(tmp_path: Path) -> None:
    fill(tmp_path, tree(1000))
    live = LivePolicies(open_source(tmp_path, POLLING), Metrics("test"))

    async def scene() -> None:
        async with running(live.run()):
            await until(lambda: live.active)
            bad = put(tmp_path, b"pol\xff.yaml")
            await until(lambda: live.rejected)
            assert live.rejected is not None
            assert live.rejected.errors[0].span.file == r"pol\xff.yaml"
            assert is_plain(live.rejected.message)
            bad.unlink()
            await until(lambda: live.rejected is None)
            assert live.graph.ask("CPUSuppress.target", node={}).value == 1000

    asyncio.run(scene())


def test_a_digest_takes_any_name() -> None:
    digests = {digest_of({name: "a"}) for name in ("pol\udcff.yaml", "pol\udcfe.yaml", "pol\ufffd.yaml")}
    assert len(digests) == 3


@pytest.mark.parametrize("files", ['{"a\\udcff": "b"}', '{"a": "\\ud800"}', '{"a": 1}', '[["a", "b"]]'])
def test_the_last_good_policies_hold_only_text(tmp_path: Path, files: str) -> None:
    store = LastGood(tmp_path)
    digest = digest_of({"a\udcff": "b"})
    store.path.write_text(f'{{"format": 1, "digest": "{digest}", "commit": "", "files": {files}}}')
    with pytest.raises(StoreError):
        store.load()


def test_a_finding_says_where_although_there_is_nothing_else(tmp_path: Path) -> None:
    """A dangling link or a closed directory alone makes no report, only a sentence."""
    (tmp_path / "a.yaml").symlink_to("nowhere")
    for words in (["check", str(tmp_path)], ["fmt", str(tmp_path)]):
        err = io.StringIO()
        assert main(words, Terminal(io.StringIO(), err)) == 2
        assert f"{tmp_path}/a.yaml: the link leads to nothing; remove or mend it" in err.getvalue()
