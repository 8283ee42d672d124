"""Which revisions say the same about overcommitted resources: a commit that speaks of other things changes none of them."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel import ir
from koordpolicy.manager.controllers.overcommit import KIND

_REMEMBERED: Final = 16
"""Graphs: that of the revision that decides, that of a candidate, and those with and without exceptions."""


@dataclass(slots=True)
class FormulaVersions:
    """Gives graphs with the same formulas the same number, as long as they are remembered."""

    _by_digest: OrderedDict[str, tuple[int, dict[str, ir.Node]]] = field(default_factory=OrderedDict)
    _last: int = 0

    def of(self, graph: RuleGraph) -> int:
        """The number of a graph's formulas."""
        found = self._by_digest.get(graph.digest)
        if found is None:
            found = self._by_digest[graph.digest] = self._numbered(graph)
            while len(self._by_digest) > _REMEMBERED:
                self._by_digest.popitem(last=False)
        return found[0]

    def _numbered(self, graph: RuleGraph) -> tuple[int, dict[str, ir.Node]]:
        formulas = {str(key): graph.expression(str(key)) for key in graph.decisions if key.kind == KIND}
        for known in reversed(self._by_digest.values()):
            if known[1] == formulas:
                return known
        self._last += 1
        return self._last, formulas
