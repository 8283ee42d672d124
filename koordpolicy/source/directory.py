"""A directory, or single files, as a tree of policy texts."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from koordpolicy.diagnostics import Diagnostics, Span

SUFFIXES = (".yaml", ".yml")
MAX_FILES = 20_000
MAX_BYTES = 4_000_000
"""The largest file that is read. What is larger is no policy, and is reported instead of read."""
MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Tree:
    """Texts by path as users shall see it, and what could not be read (KP001, KP004).

    `touched` are the files that were there to be read, those included that are no policies.
    """

    files: dict[str, str] = field(default_factory=dict)
    found: Diagnostics = field(default_factory=Diagnostics)
    touched: list[str] = field(default_factory=list)


def read_tree(paths: Sequence[str | Path]) -> Tree:
    """All YAML files at or below the paths, in a stable order, each once.

    A file that is named is read whatever its suffix. Hidden files and directories (`.git`, the
    timestamped directories of a ConfigMap volume) are passed over, unless they are named; links are
    followed, but never in a circle. Nothing raises: what cannot be read is a finding.
    """
    tree = Tree()
    seen: set[str] = set()
    for path in paths:
        for file in _files(Path(path), tree.found):
            real = os.path.realpath(file)
            if real in seen:
                continue
            seen.add(real)
            if len(seen) > MAX_FILES:
                tree.found.add(
                    "KP004",
                    Span.at(str(path)),
                    f"there are more than {MAX_FILES:,} files here",
                    help="name the directory that holds the policies",
                )
                return tree
            _read(file, tree)
    return tree


def _files(path: Path, found: Diagnostics) -> Iterator[Path]:
    if path.is_dir():
        yield from _below(path, found, [os.path.realpath(path)])
    elif path.exists():
        yield path
    else:
        why = "is a link to nothing" if path.is_symlink() else "does not exist"
        found.add(
            "KP001", Span.at(str(path)), f"`{path}` {why}", help="name a file or a directory of policies"
        )


def _below(directory: Path, found: Diagnostics, trail: list[str]) -> Iterator[Path]:
    try:
        entries = sorted(directory.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        found.add("KP001", Span.at(str(directory)), f"the directory cannot be read: {error.strerror}")
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            real = os.path.realpath(entry)
            if real in trail or len(trail) > MAX_DEPTH:
                found.add(
                    "KP001",
                    Span.at(str(entry)),
                    "the directory contains itself, by a link"
                    if real in trail
                    else "directories are too deep",
                    help="remove the link",
                )
                continue
            yield from _below(entry, found, [*trail, real])
        elif entry.suffix in SUFFIXES:
            if entry.is_symlink() and not entry.exists():
                found.add("KP001", Span.at(str(entry)), "the link leads to nothing", help="remove or mend it")
            else:
                yield entry


def _read(file: Path, tree: Tree) -> None:
    place = Span.at(str(file))
    try:
        size = file.stat().st_size
        content = file.read_bytes() if size <= MAX_BYTES else b""
        tree.touched.append(str(file))
        if size > MAX_BYTES:
            tree.found.add(
                "KP004", place, f"the file has {size:,} bytes, more than {MAX_BYTES:,}", help="split it"
            )
            return
        tree.files[str(file)] = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        tree.found.add(
            "KP001",
            Span.at(str(file), line, column),
            f"the file is not UTF-8: byte 0x{error.object[error.start]:02x} cannot be read",
            help="save it as UTF-8",
        )
    except OSError as error:
        tree.found.add("KP001", place, f"the file cannot be read: {error.strerror}")
