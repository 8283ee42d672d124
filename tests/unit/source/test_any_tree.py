"""Whatever a tree holds, a source gives a revision with findings, or a trouble; it never raises and never waits."""

import asyncio
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.escaping import is_plain
from koordpolicy.diagnostics.render import RENDERERS, render
from koordpolicy.source import Revision, SourceTrouble, read_tree
from koordpolicy.source.paths import Timing, open_source
from koordpolicy.source.revision import digest_of

_SECONDS = 30.0
_BYTES = st.binary(min_size=1, max_size=12).map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"0"))
NAMES = st.one_of(
    st.sampled_from(
        [b"a.yaml", b"b.yml", b"koordpolicy.yaml", b"dir", b".git", b"..data", b".koordpolicy-commit"]
    ),
    _BYTES.map(lambda name: name + b".yaml"),
    _BYTES,
    st.text(max_size=40).map(
        lambda name: name.replace("/", "_").replace("\0", "0").encode()[:200] + b".yaml"
    ),
    st.just(b"n" * 240 + b".yaml"),
).filter(lambda name: name not in {b".", b".."})
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [b"a: 1\n", b"gitdir: \0\n", b"gitdir: ../x\n", b"f" * 40 + b"\n", "ü: \ufeff\n".encode()]
    ),
)
LINKS = st.sampled_from(
    [b"a.yaml", b"..", b".", b"/", b"/dev/zero", b"/proc/self/mem", b"nowhere", b"x" * 300, b"\xff"]
)
ENTRIES: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("file"), CONTENTS),
    st.tuples(st.just("link"), LINKS),
    st.tuples(st.sampled_from(["fifo", "socket", "sparse", "closed", "nested"]), st.none()),
)
TREES = st.recursive(
    st.dictionaries(NAMES, ENTRIES, max_size=6),
    lambda inner: st.dictionaries(NAMES, ENTRIES | st.tuples(st.just("tree"), inner), max_size=4),
    max_leaves=12,
)


def make(directory: bytes, entries: dict[bytes, Any]) -> None:
    """The tree on the disk, but for what a file system does not take."""
    os.mkdir(directory)  # noqa: PTH102  # names of bytes are what this is about
    for name, (kind, what) in entries.items():
        place = os.path.join(directory, name)  # noqa: PTH118
        with suppress(OSError):
            MAKERS[kind](place, what)


def _file(place: bytes, content: bytes) -> None:
    with open(place, "wb") as out:  # noqa: PTH123
        out.write(content)


def _sparse(place: bytes, _: None) -> None:
    _file(place, b"")
    os.truncate(place, 1 << 42)


def _closed(place: bytes, _: None) -> None:
    os.mkdir(place, 0)  # noqa: PTH102


def _nested(place: bytes, _: None) -> None:
    for _level in range(60):
        os.mkdir(place)  # noqa: PTH102
        place += b"/d"
    _file(place + b".yaml", b"")


def _socket(place: bytes, _: None) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(place)


MAKERS: dict[str, Callable[[bytes, Any], None]] = {
    "file": _file,
    "link": lambda place, target: os.symlink(target, place),  # noqa: PTH211
    "fifo": lambda place, _: os.mkfifo(place),
    "socket": _socket,
    "sparse": _sparse,
    "closed": _closed,
    "nested": _nested,
    "tree": make,
}


@contextmanager
def on_disk(root: Path, entries: dict[bytes, Any]) -> Iterator[Path]:
    """The tree, until it is removed again."""
    place = root / "tree"
    make(os.fsencode(place), entries)
    try:
        yield place
    finally:
        shutil.rmtree(os.fsencode(place))


def judge(files: dict[str, str], found: Diagnostics) -> None:
    """Names and texts are text, and every format can report what was found."""
    for one in (*files, *files.values(), *(one.span.file for one in found)):
        one.encode("utf-8")
    assert all(map(is_plain, files))
    digest_of(files)
    for format in RENDERERS:
        render(format, found, files).encode("utf-8")


@given(TREES)
def test_of_any_tree_comes_text(tmp_path_factory: Any, entries: dict[bytes, Any]) -> None:
    with on_disk(tmp_path_factory.mktemp("any"), entries) as place:
        tree = read_tree([place])
        judge({os.path.relpath(file, place): text for file, text in tree.files.items()}, tree.found)


@settings(max_examples=40)
@example({b".git": ("fifo", None), b"a.yaml": ("file", b"")})
@example({b".git": ("sparse", None), b"a.yaml": ("file", b"")})
@example({b".git": ("file", b"gitdir: \0\n"), b"a.yaml": ("file", b"")})
@example({b".koordpolicy-commit": ("fifo", None), b"a.yaml": ("file", b"")})
@given(TREES)
def test_of_any_tree_comes_a_revision_or_a_trouble(tmp_path_factory: Any, entries: dict[bytes, Any]) -> None:
    with on_disk(tmp_path_factory.mktemp("any"), entries) as place:

        async def first() -> Revision | SourceTrouble:
            async with asyncio.timeout(_SECONDS):
                async for outcome in open_source(place, Timing(quiet=0.0, longest=0.1, poll=0.1)).revisions():
                    return outcome
            raise AssertionError

        outcome = asyncio.run(first())
        if isinstance(outcome, Revision):
            judge(dict(outcome.files), outcome.found)
        else:
            outcome.message.encode("utf-8")


@settings(max_examples=15)
@given(TREES, TREES)
def test_trees_that_change_while_they_are_read(
    tmp_path_factory: Any, one: dict[bytes, Any], other: dict[bytes, Any]
) -> None:
    """One takes the place of the other, again and again; what is read in between is whole, or found missing."""
    root = tmp_path_factory.mktemp("any")
    place = root / "tree"
    make(os.fsencode(place), one)
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            for entries in (other, one):
                shutil.rmtree(os.fsencode(place), ignore_errors=True)
                with suppress(OSError):
                    make(os.fsencode(place), entries)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(20):
            tree = read_tree([place])
            judge({str(Path(file).name) or file: text for file, text in tree.files.items()}, tree.found)
    finally:
        over.set()
        changing.join(_SECONDS)
        shutil.rmtree(os.fsencode(place), ignore_errors=True)


def test_a_device_in_the_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    """A link to a device is followed nowhere, and a file that became one ends at the limit."""
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    found = read_tree([tmp_path]).found
    assert [one.message for one in found] == ["the link leads out of the tree"]
