"""What a live ConfigMap `slo-controller-config` says, as policies that lie above the others.

Each of its documents stands or falls by itself, as in Koordinator: one that cannot be read, or holds what policies refuse,
changes nothing, and what it said before holds. Lists are merged over those of the built-in pack, whose values are Koordinator's own.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.exchange.documents import SOURCE, Imported, Taken
from koordpolicy.graph.exchange.importing import import_config
from koordpolicy.graph.exchange.refusing import files_of, without_refused
from koordpolicy.language.documents.writing import yaml_text
from koordpolicy.model.slo_config import LAYOUTS, ConfigError, read_document
from koordpolicy.runtime.policies.packs import BARE
from koordpolicy.runtime.policies.proposal import Proposal
from koordpolicy.runtime.policies.revisions import errors_of

PRECEDENCE: Final = 999_999
"""Above all policies but those that take the greatest precedence there is. What entries say for some nodes has one more."""

_MOST_ENTRIES: Final = 500
"""Entries of one document: each is compared with those before it, a quarter of a second for so many."""

Check = Callable[[Mapping[str, str]], Proposal]
"""Finds out what would become of some files; waits for that."""


@dataclass(frozen=True, slots=True)
class LiveConfig:
    """Policies by path, one file a document of the ConfigMap; what was refused of it, and what policies cannot say."""

    files: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[Taken, ...] = ()
    left_out: tuple[Taken, ...] = ()


class ConfigReader:
    """Reads the data of a ConfigMap. `pack` is the graph of the built-in pack, `directory` where its files are shown."""

    def __init__(self, pack: RuleGraph, check: Check, directory: str) -> None:
        self._pack = pack
        self._check = check
        self._directory = directory

    def read(self, data: Mapping[str, str], before: Mapping[str, str]) -> LiveConfig:
        """What the data says; of documents that are refused, what they said `before`, by path."""
        large = [row for key, text in data.items() if (row := _too_large(key, text)) is not None]
        small = {key: text for key, text in data.items() if all(row.source != key for row in large)}
        imported = import_config(small, self._pack, PRECEDENCE)
        checked, found = self._checked(imported)
        refused = large + found
        refused += [row for row in checked.table if row.source in LAYOUTS and not row.decision]
        bad = {document_of(row.source) for row in refused}
        kept = {path for path in map(self._path, bad) if path in before}
        said = defaultdict(list)
        for one in imported.documents:
            said[document_of(one["metadata"]["annotations"][SOURCE])].append(one)
        files = {self._path(key): yaml_text(documents) for key, documents in said.items() if key not in bad}
        told = [row for row in checked.table if not row.decision and row not in refused]
        return LiveConfig(
            dict(sorted({**files, **{path: before[path] for path in kept}}.items())),
            tuple(refused),
            tuple(row for row in told if document_of(row.source) not in bad),
        )

    def _checked(self, imported: Imported) -> tuple[Imported, list[Taken]]:
        """The table with what policies refuse, and those rows of it."""
        if not imported.documents:
            return imported, []
        first = self._try(imported.documents)
        if first.reason is None:
            return imported, []
        if not errors_of(first.found):  # no mistake of any one field: all of it is too much
            documents = {document_of(one["metadata"]["annotations"][SOURCE]) for one in imported.documents}
            rows = [Taken(key, reason=first.message) for key in sorted(documents)]
            return imported, rows
        checked = without_refused(imported, self._try)
        pairs = zip(imported.table, checked.table, strict=True)
        return checked, [after for before, after in pairs if before.decision and not after.decision]

    def _try(self, documents: Sequence[dict[str, Any]]) -> Proposal:
        return self._check({**dict([BARE]), **files_of(documents)})

    def _path(self, key: str) -> str:
        return f"{self._directory}/{key}.yaml"


def _too_large(key: str, text: str) -> Taken | None:
    """A refusal of a document that says something for more sorts of nodes than are compared with each other."""
    try:
        document = read_document(key, text) if key in LAYOUTS and text else None
    except ConfigError:
        return None  # which will be told
    count = 0 if document is None else len(document.entries)
    if count <= _MOST_ENTRIES:
        return None
    return Taken(key, reason=f"it has {count} entries for nodes; at most {_MOST_ENTRIES} are followed")


def document_of(source: str) -> str:
    """The key of the ConfigMap's document that a place lies in."""
    return source.partition(".")[0].partition(":")[0]
