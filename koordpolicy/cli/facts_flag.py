"""Facts from a file, as PolicyTests write them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.flags.stdin import UNNAMED
from koordpolicy.cli.input import STDIN
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.render import render
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.testing import Said, read_facts
from koordpolicy.language.documents import read_documents
from koordpolicy.source import read_tree
from koordpolicy.source.limits import READ
from koordpolicy.source.texts import tree_of


@dataclass(frozen=True, slots=True)
class GivenFacts:
    """Every root by name, and the facts (`root.path`) that the file says."""

    records: dict[str, Any]
    said: Said

    def unsaid(self, paths: frozenset[str]) -> frozenset[str]:
        """Those of the facts that have their values by default."""
        return paths - {f"{root}.{path}" if path else root for root, path in self.said}


def read_given(file: str, terminal: Terminal) -> GivenFacts:
    """The facts of a file or a pipe, `-` for standard input; raises `CannotRunError` with everything that is wrong with it."""
    tree = read_tree([file]) if Path(file).is_file() else tree_of(*_streamed(file, terminal))
    found = Diagnostics()
    found.extend(tree.found)
    said: Said = {}
    for name, text in tree.files.items():
        documents = read_documents(name, text, found)
        if len(documents) == 1:
            said = read_facts(documents[0].data, documents[0], (), found)
        elif not len(found):
            raise CannotRunError(f"`{file}` has {len(documents)} documents; one with facts is needed")
    if len(found):
        raise CannotRunError("the facts are wrong\n\n" + render("text", found, tree.files))
    return GivenFacts(records_of(said), said)


def _streamed(file: str, terminal: Terminal) -> tuple[str, bytes]:
    """What a pipe or standard input gives, with the name that it has in findings."""
    try:
        if file == STDIN:
            return UNNAMED, terminal.read(READ.file_bytes + 1)
        if not Path(file).exists() or Path(file).is_dir():
            raise CannotRunError(
                f"`{file}` is no file; `--given` names one with facts, or `-` for standard input"
            )
        with Path(file).open("rb") as pipe:
            return file, pipe.read(READ.file_bytes + 1)
    except (OSError, ValueError) as error:
        raise CannotRunError(f"`{file}` cannot be read: {error}") from None
