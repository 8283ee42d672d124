"""Which revisions say the same about overcommitted resources: a commit that speaks of other things changes none of them."""

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.manager.controllers.overcommit import KIND

_SPEAKING: Final = frozenset({KIND, "Library"})
"""Kinds whose documents have a say in the formulas, beside exceptions."""
_REMEMBERED: Final = 16
"""Graphs: that of the revision that decides, that of a candidate, and those with and without exceptions."""


@dataclass(slots=True)
class FormulaVersions:
    """Gives graphs with the same formulas the same version.

    Documents are compared, and not what became of them: the expression of a thousand documents is too deep to compare.
    """

    _by_digest: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def of(self, graph: RuleGraph) -> str:
        """The version of a graph's formulas."""
        found = self._by_digest.get(graph.digest)
        if found is None:
            found = self._by_digest[graph.digest] = _version(graph)
            while len(self._by_digest) > _REMEMBERED:
                self._by_digest.popitem(last=False)
        return found


def _version(graph: RuleGraph) -> str:
    said = [
        json.dumps([unit.layer_name, unit.id, unit.document.data.get("spec")], sort_keys=True, default=str)
        for unit in sorted(graph.units, key=lambda unit: (unit.layer, unit.id))
        if unit.kind.name in _SPEAKING
    ]
    said += sorted(repr(terms) for terms in graph.in_force)
    return hashlib.sha256("\n".join(said).encode("utf-8", "surrogatepass")).hexdigest()
