"""`koordpolicy fmt`: policy files in their canonical layout."""

import argparse
import json
from collections.abc import Container, Mapping, Sequence

from koordpolicy.cli.bundle import left_alone, told
from koordpolicy.cli.command import FINDINGS, OK, CannotRunError
from koordpolicy.cli.edits import show_change, write_text
from koordpolicy.cli.input import STDIN, read_paths
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.diagnostics.render import render
from koordpolicy.language.foreign import foreign_files
from koordpolicy.language.format import format_text
from koordpolicy.source import Tree


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Lay files out, or say which are not."""
    tree = read_paths(arguments.paths, arguments.stdin_filename, terminal)
    found = Diagnostics()
    found.extend(tree.found)
    foreign = foreign_files(tree.files)
    changed = _changed(tree, foreign, found)
    if alone := left_alone(foreign, terminal.width):
        terminal.say(alone)
    if not tree.touched:
        why = "\n".join(map(told, found))
        raise CannotRunError(why or "there is no policy file (*.yaml, *.yml) here")
    dry = arguments.check or arguments.diff
    if STDIN in arguments.paths and not dry:
        if arguments.output != "text":
            raise CannotRunError("`-` gives the text itself; `-o json` goes with --check")
        return _filter(arguments.paths, tree, changed, found, terminal)
    failed = FINDINGS if found.has_errors or (dry and changed) else OK
    if arguments.output == "json":
        for file, text in {} if dry else changed.items():
            write_text(file, text)
        terminal.print(_data(tree, foreign, changed, found, written=not dry))
        return failed
    for file, text in changed.items():
        if arguments.diff:
            show_change(file, tree.files[file], text, "formatted", terminal)
        elif arguments.check:
            terminal.print(file)
        else:
            write_text(file, text)
            terminal.say(f"formatted {file}")
    if len(found):
        terminal.say(
            render("text", found, tree.files, colour=terminal.colour(terminal.err), width=terminal.width)
        )
    count = f"{len(tree.files):,} file{'' if len(tree.files) == 1 else 's'}"
    terminal.say(f"{count}, {len(changed):,} {'would change' if dry else 'changed'}")
    return failed


def _data(
    tree: Tree, foreign: Mapping[str, str], changed: Container[str], found: Diagnostics, *, written: bool
) -> str:
    findings = json.loads(render("json", found, tree.files, limit=0))
    files = [
        {
            "file": file,
            "changed": file in changed,
            "written": written and file in changed,
            "foreign": foreign.get(file),
        }
        for file in tree.files
    ]
    return json_text({"files": files, "findings": findings["findings"]}, indent=2)


def _filter(
    paths: Sequence[str], tree: Tree, changed: Mapping[str, str], found: Diagnostics, terminal: Terminal
) -> int:
    """The text of standard input to standard output, formatted; nothing of one that cannot be read."""
    if len(paths) > 1:
        raise CannotRunError("`-` goes alone, or with --check or --diff")
    if found.has_errors:
        terminal.say(
            render("text", found, tree.files, colour=terminal.colour(terminal.err), width=terminal.width)
        )
        return FINDINGS
    for file, text in tree.files.items():
        terminal.print(changed.get(file, text))
    return OK


def _changed(tree: Tree, foreign: Container[str], found: Diagnostics) -> dict[str, str]:
    """The new texts of the policy files that are not in their canonical layout."""
    own = {file: text for file, text in tree.files.items() if file not in foreign}
    formatted = {file: format_text(file, text, found) for file, text in own.items()}
    return {file: text for file, text in formatted.items() if text != tree.files[file]}
