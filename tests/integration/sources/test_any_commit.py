"""Whatever a commit holds, a repository gives a revision with findings, or a trouble; what was good before stays."""

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from koordpolicy.diagnostics.escaping import encodable, is_plain
from koordpolicy.source import Revision, SourceTrouble
from koordpolicy.source.git.repository import RepositorySource
from tests.integration.sources.repositories import Upstream
from tests.integration.sources.syncs import sync, syncing
from tests.integration.sources.test_sync_limits import blob, commit_of, plumb

_SECONDS = 60.0
NAMES = st.one_of(
    st.sampled_from(
        [b"a.yaml", b"b.yml", b".git", b".GIT", b"..", b".gitmodules", b".gitattributes", b"-a.yaml"]
    ),
    st.binary(min_size=1, max_size=12).map(
        lambda name: name.replace(b"/", b"_").replace(b"\0", b"0") + b".yaml"
    ),
    st.just(b"n" * 300 + b".yaml"),
)
ENTRIES = st.tuples(
    st.sampled_from(["100644", "100755", "120000", "160000", "tree"]),
    st.binary(max_size=40) | st.sampled_from([b"/dev/zero", b"..", b"a.yaml", b"* filter=x\n"]),
)
TREES = st.recursive(
    st.dictionaries(NAMES, ENTRIES, max_size=5),
    lambda inner: st.dictionaries(NAMES, ENTRIES | st.tuples(st.just("tree"), inner), max_size=3),
    max_leaves=6,
)


def written(bare: Path, entries: dict[bytes, Any]) -> str:
    """The tree as an object, whatever Git thinks of its names."""
    listed: list[tuple[bytes, bytes]] = []
    for name, (mode, what) in entries.items():
        if mode == "tree":
            oid = written(bare, what if isinstance(what, dict) else {})
        else:
            oid = "1" * 40 if mode == "160000" else blob(bare, what)
        octal = "40000" if mode == "tree" else mode
        listed.append(
            (
                name + (b"/" if mode == "tree" else b""),
                octal.encode() + b" " + name + b"\0" + bytes.fromhex(oid),
            )
        )
    content = b"".join(record for _, record in sorted(listed))
    return plumb(bare, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", given=content)


@settings(max_examples=25)
@example({b"pol\xff.yaml": ("100644", b"a: 1")})
@example({b".git": ("tree", {b"config": ("100644", b"[core]\n\tfsmonitor = touch /tmp/x\n")})})
@example({b"..": ("tree", {b"a.yaml": ("100644", b"")})})
@given(TREES)
def test_any_commit(tmp_path_factory: Any, entries: dict[bytes, Any]) -> None:
    root = tmp_path_factory.mktemp("commit")
    upstream, target = Upstream(root / "upstream"), root / "target"
    good = upstream.commit({"good.yaml": "1"})
    syncer = syncing(upstream.bare, target, period=60, pause=0.01)
    sync(syncer)
    syncer.close()
    commit = commit_of(upstream.bare, written(upstream.bare, entries))

    async def outcomes() -> list[Revision | SourceTrouble]:
        """What comes until the commit was read or refused."""
        seen: list[Revision | SourceTrouble] = []
        async with asyncio.timeout(_SECONDS):
            async for outcome in RepositorySource(syncing(upstream.bare, target, period=60)).revisions():
                seen.append(outcome)
                if isinstance(outcome, SourceTrouble) or outcome.commit != good:
                    return seen
        raise AssertionError

    last = asyncio.run(outcomes())[-1]
    if isinstance(last, SourceTrouble):
        assert encodable(last.message) == last.message
        return
    assert last.commit == commit
    assert all(map(is_plain, last.files))
    assert all(is_plain(one.span.file) for one in last.found)
    assert not (root / "a.yaml").exists()
