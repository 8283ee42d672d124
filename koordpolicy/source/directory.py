"""Directories and single files, as a tree of policy texts, read once."""

import os
from collections.abc import Sequence
from pathlib import Path

from koordpolicy.diagnostics import Diagnostics, Span
from koordpolicy.diagnostics.escaping import one_line
from koordpolicy.source.survey import Survey, is_below, survey, tree_around
from koordpolicy.source.texts import Tree, TreeTexts

__all__ = ["Tree", "read_tree"]


def read_tree(paths: Sequence[str | Path]) -> Tree:
    """All YAML files at or below the paths, in a stable order, each once.

    A file that is named is read whatever its suffix. Hidden files and directories (`.git`, the
    timestamped directories of a ConfigMap volume) are passed over, unless they are named; links are
    followed within the directory that is named and the Git work tree around it, but never in a circle.
    Nothing raises: what cannot be read is a finding.
    """
    tree = Tree()
    seen: set[str] = set()
    for path in map(str, paths):
        if not os.path.exists(path):
            why = "is a link to nothing" if os.path.islink(path) else "does not exist"
            named = one_line(path)
            tree.found.add(
                "KP001", Span.at(named), f"`{named}` {why}", help="name a file or a directory that there is"
            )
            continue
        real = os.path.realpath(path)
        if os.path.islink(path) and not os.path.isdir(real):
            # Whoever names a file that a merge request brought shows what stands in it.
            around = os.path.realpath(os.path.dirname(path) or ".")
            if not is_below(real, tree_around(around)):
                named = one_line(path)
                tree.found.add(
                    "KP001",
                    Span.at(named),
                    f"the link `{named}` leads out of the tree",
                    help="keep what it leads to inside the tree, or name that itself",
                )
                continue
        looked = survey(real, tree_around(real), shown=path)
        if not os.path.isdir(real):
            alone = {"": next(iter(looked.files.values()))} if looked.files else {}
            looked = Survey(alone, {}, _at(path, looked.found))
        looked.files = {inner: file for inner, file in looked.files.items() if file.real not in seen}
        seen.update(file.real for file in looked.files.values())
        _join(tree, TreeTexts(path).read(looked))
    return tree


def _at(path: str, found: Diagnostics) -> Diagnostics:
    """Findings of a file that was named, at the name it was given."""
    placed = Diagnostics()
    for one in found:
        placed.add(one.code, Span.at(one_line(path)), one.message, help=one.help)
    return placed


def _join(tree: Tree, more: Tree) -> None:
    tree.files.update(more.files)
    tree.found.extend(more.found)
    tree.touched.extend(more.touched)
    tree.nearly.update(more.nearly)
