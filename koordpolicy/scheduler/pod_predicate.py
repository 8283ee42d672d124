"""A decision about other pods than the one that is decided on: yes or no, remembered for pods that are alike."""

from collections.abc import Callable
from typing import Any, Final

from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import Records, prepared
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError

_REMEMBERED: Final = 200_000
"""Answers about pods that are kept at once."""


class PodPredicate:
    """The decision `path` of a graph about pods that it reads as `root`. One that fails says no."""

    __slots__ = ("_decision", "_known", "_others", "_root")

    def __init__(self, graph: RuleGraph, path: str, root: str) -> None:
        self._decision = prepared(graph, path)
        self._root = root
        self._others = [(one, path) for one, path in sorted(self._decision.facts) if one != root]
        self._known: dict[Any, bool] = {}

    @property
    def reads(self) -> frozenset[str]:
        """The facts that it reads of other pods."""
        return frozenset(path for root, path in self._decision.facts if root == self._root)

    def signature(self, records: Records) -> tuple[Any, ...]:
        """What it reads of everything but the other pods: equal signatures, equal answers."""
        return tuple(
            [
                record if not path else (record or {}).get(path)
                for root, path in self._others
                for record in (records.get(root),)
            ]
        )

    def bound(self, records: Records) -> Callable[[PodView], bool]:
        """What it says of other pods for the one that `records` speak of. Pods that agree in all it reads share an answer."""
        decision, known = self._decision, self._known
        if decision.program is None:
            always = decision.constant is True
            return lambda _view: always
        mine = self.signature(records)
        theirs = sorted(path for one, path in decision.facts if one == self._root)

        def ask(view: PodView) -> bool:
            facts = view.facts
            key = (mine, *[facts.get(path) for path in theirs])
            try:
                found = known.get(key)
            except TypeError:  # something that has no hash, such as labels
                return self._true(records, view)
            if found is None:
                if len(known) > _REMEMBERED:
                    known.clear()
                found = known[key] = self._true(records, view)
            return found

        return ask

    def _true(self, records: Records, other: PodView) -> bool:
        try:
            return self._decision.value({**records, self._root: other.facts}) is True
        except CelError:
            return False
