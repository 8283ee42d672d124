"""Policies from files, directories and standard input."""

import os
from collections.abc import Sequence

from koordpolicy.cli.bundles import enclosing
from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.flags.stdin import UNNAMED
from koordpolicy.cli.terminal import Terminal
from koordpolicy.source import Tree, read_tree
from koordpolicy.source.limits import READ
from koordpolicy.source.texts import tree_of

STDIN = "-"
"""The path that stands for standard input."""


def around(paths: Sequence[str], stdin_filename: str) -> list[str]:
    """The paths, with the folder that the file called so stands in, or would, where it is in a bundle."""
    folder = os.path.dirname(stdin_filename) or "."  # noqa: PTH120 - as it is shown
    beside = STDIN in paths and stdin_filename != UNNAMED and enclosing(folder)
    return [*paths, beside] if beside else list(paths)


def read_paths(paths: Sequence[str], stdin_filename: str, terminal: Terminal) -> Tree:
    """The files at or below the paths; `-` is standard input, in place of the file that it is called after.

    Raises `CannotRunError` where standard input cannot be read.
    """
    tree = read_tree([path for path in paths if path != STDIN])
    if STDIN not in paths:
        return tree
    name = _same_file(tree, stdin_filename)
    given = tree_of(name, _content(terminal))
    tree.files.pop(name, None)
    tree.files.update(given.files)
    tree.found.extend(given.found)
    tree.touched.append(name)
    return tree


def _same_file(tree: Tree, name: str) -> str:
    """The name under which the tree has a file already, whatever way leads there; the name itself if it has not."""
    real = os.path.realpath(name)
    return next((file for file in tree.files if file == name or os.path.realpath(file) == real), name)


def _content(terminal: Terminal) -> bytes:
    try:
        return terminal.read(READ.file_bytes + 1)
    except (OSError, ValueError) as error:
        raise CannotRunError(f"standard input cannot be read: {error}") from None
