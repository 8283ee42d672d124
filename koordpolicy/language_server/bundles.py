"""The bundles of an editor's files: found, read with open buffers over them, and compiled again where something changed."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from koordpolicy import resources
from koordpolicy.diagnostics import Diagnostic, Diagnostics
from koordpolicy.graph import Compilation, Layer, RuleGraph
from koordpolicy.graph.exceptions import judge_exceptions
from koordpolicy.graph.testing import with_tests
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.documents import Lines
from koordpolicy.language_server.index import Mention, mentions
from koordpolicy.language_server.values import Values, values_of
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.policies.packs import BUILT_IN, OWN
from koordpolicy.source.survey import survey, tree_around
from koordpolicy.source.texts import TreeTexts

SUFFIXES: Final = (".yaml", ".yml")
OURS: Final = "koordpolicy.io/"
"""What a file must mention to be taken for policies where no bundle says that it is one."""


@dataclass(frozen=True)
class Snapshot:
    """What came of a bundle when it was last compiled: its own files by absolute path, and findings by file.

    `graph` and `values` are those of the last time that it compiled at all.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    compilation: Compilation = field(default_factory=lambda: Compilation(None, Diagnostics(), (), {}))
    found: Mapping[str, list[Diagnostic]] = field(default_factory=dict)
    graph: RuleGraph | None = None
    values: Values = field(default_factory=Values)

    @cached_property
    def mentions(self) -> list[Mention]:
        """Every mention of every name, packs included."""
        return list(mentions(self.compilation.units))

    @cached_property
    def _lines(self) -> dict[str, Lines]:
        return {}

    def lines(self, file: str) -> Lines | None:
        """The text of a file of the bundle or of its packs, as it was compiled."""
        if file not in self._lines:
            text = self.texts.get(file, self.compilation.sources.get(file))
            if text is None:
                return None
            self._lines[file] = Lines(file, text)
        return self._lines[file]


class Bundle:
    """The files below one directory, and what came of them.

    `whole` says that there is a bundle document: without one, only files that speak of policies are read.
    """

    def __init__(self, root: str, *, whole: bool) -> None:
        self.root = root
        self.whole = whole
        self.snapshot = Snapshot()
        self._compiler = pack_remembering()
        self._tree = TreeTexts(root)

    def compile(self, buffers: Mapping[str, str], now: Timestamp) -> Snapshot:
        """Read the files, `buffers` in place of those that are open, and compile. Blocks."""
        texts = self._read(buffers)
        return self.compile_texts(texts, now)

    def compile_texts(self, texts: Mapping[str, str], now: Timestamp) -> Snapshot:
        """Compile these texts as the bundle's own. Blocks."""
        compilation = self._compiler.compile(Layer(OWN, texts))
        checked = with_tests(compilation)
        everything = Diagnostics()
        everything.extend(checked.found)
        everything.extend(judge_exceptions(checked.units, now))
        found: dict[str, list[Diagnostic]] = {}
        for one in everything:
            found.setdefault(one.span.file, []).append(one)
        graph, values = self.snapshot.graph, self.snapshot.values
        if compilation.graph is not None:
            graph, values = compilation.graph, values_of(compilation)
        return Snapshot(texts, compilation, found, graph, values)

    def _read(self, buffers: Mapping[str, str]) -> dict[str, str]:
        looked = survey(self.root, tree_around(self.root), shown=self.root)
        files = dict(self._tree.read(looked).files)
        for path, text in buffers.items():
            if path in files or self.holds(path):
                files[path] = text
        return files if self.whole else {path: text for path, text in files.items() if OURS in text}

    def holds(self, path: str) -> bool:
        """Whether a file lies below the root and is called as policies are."""
        if not path.startswith(self.root.rstrip(os.sep) + os.sep) or not path.endswith(SUFFIXES):
            return False
        return not any(part.startswith(".") for part in Path(path[len(self.root) :]).parts)


RootFinder = Callable[[str], str | None]
"""Finds the directory of the bundle that a file lies in; None where it lies in none."""


class Bundles:
    """The bundles that open files belong to. `buffers` are the texts of open files by path."""

    def __init__(self, root_of: RootFinder) -> None:
        self.buffers: dict[str, str] = {}
        self._root_of = root_of
        self._known: dict[str, Bundle] = {}

    def of(self, path: str) -> Bundle | None:
        """The bundle of a file; None for one that is no policy."""
        root = self._root_of(path)
        if root is None and OURS not in self.buffers.get(path, ""):
            return None
        place = root or str(Path(path).parent)
        bundle = self._known.get(place)
        if bundle is None or bundle.whole != (root is not None):
            bundle = self._known[place] = Bundle(place, whole=root is not None)
        return bundle

    def all(self) -> list[Bundle]:
        """Those that were asked for until now."""
        return list(self._known.values())


def path_of(file: str) -> str | None:
    """Where a file that a finding or definition names lies on the disk; that of a pack in the installation."""
    if file.startswith(f"{BUILT_IN}/"):
        return str(resources.policies() / file.removeprefix(f"{BUILT_IN}/"))
    return file if Path(file).is_absolute() else None
