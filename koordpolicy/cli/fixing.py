"""`check --fix`: carrying out the fixes of findings, as long as there are any."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.edits import show_change, write_text
from koordpolicy.cli.input import STDIN
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics import Fix
from koordpolicy.graph import Compilation
from koordpolicy.language.documents import Lines
from koordpolicy.language.documents.edits import applied
from koordpolicy.source import Tree

MAX_ROUNDS = 20
"""How often files are looked at again: one fix may bring to light what another finding hid."""

Check = Callable[[Tree], Compilation]


@dataclass(frozen=True, slots=True)
class Mended:
    """The tree after fixes, what a check says of it, and how many fixes were carried out."""

    tree: Tree
    compilation: Compilation
    count: int


def mend(tree: Tree, check: Check, *, unsafe: bool) -> Mended:
    """Carry out fixes in the tree's own files until a check has none left, or the rounds are used up."""
    compilation, count = check(tree), 0
    for _ in range(MAX_ROUNDS):
        files, done = _mended(tree.files, compilation, unsafe=unsafe)
        if not done:
            break
        count += done
        tree = replace(tree, files=files)
        compilation = check(tree)
    return Mended(tree, compilation, count)


def _mended(files: Mapping[str, str], found: Compilation, *, unsafe: bool) -> tuple[dict[str, str], int]:
    fixes: dict[str, list[Fix]] = {}
    for one in found.found:
        if one.fix is not None and (one.fix.safe or unsafe) and one.fix.span.file in files:
            fixes.setdefault(one.fix.span.file, []).append(one.fix)
    after, count = dict(files), 0
    for file, own in fixes.items():
        after[file], done = applied(Lines(file, files[file]), own)
        count += len(done)
    return after, count


def fix_files(arguments: argparse.Namespace, tree: Tree, check: Check, terminal: Terminal) -> Compilation:
    """Mend a tree's files as the flags say and write them; gives what a check says of the result.

    A dry run shows the changes and checks the files as they are. Raises `CannotRunError`.
    """
    if STDIN in arguments.paths and not arguments.dry_run:
        raise CannotRunError(
            "--fix writes files, and standard input is none; --dry-run shows what would change"
        )
    mended = mend(tree, check, unsafe=arguments.unsafe_fixes)
    changed = {file: text for file, text in mended.tree.files.items() if text != tree.files[file]}
    for file, text in changed.items():
        if not arguments.dry_run:
            write_text(file, text)
        elif arguments.output == "text":
            show_change(file, tree.files[file], text, "fixed", terminal)
    fixes = f"{mended.count:,} {'fix' if mended.count == 1 else 'fixes'}"
    files = f"{len(changed):,} {'file' if len(changed) == 1 else 'files'}"
    terminal.say(f"{fixes} in {files}" + (", not written" if arguments.dry_run and changed else ""))
    return check(tree) if arguments.dry_run else mended.compilation
