"""Facts from a file, as PolicyTests write them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from koordpolicy.cli.command import CannotRunError
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.render import render
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.testing import Said, read_facts
from koordpolicy.language.documents import read_documents
from koordpolicy.source import read_tree


@dataclass(frozen=True, slots=True)
class GivenFacts:
    """Every root by name, and the facts (`root.path`) that the file says."""

    records: dict[str, Any]
    said: Said

    def unsaid(self, paths: frozenset[str]) -> frozenset[str]:
        """Those of the facts that have their values by default."""
        return paths - {f"{root}.{path}" if path else root for root, path in self.said}


def read_given(file: str) -> GivenFacts:
    """The facts of a file; raises `CannotRunError` with everything that is wrong with it."""
    if not Path(file).is_file():
        raise CannotRunError(f"`{file}` is no file; `--given` names one with facts")
    tree = read_tree([file])
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
