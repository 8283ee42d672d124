"""The evaluations of the latest kinds of pods, each asked again only of what has changed since. See README.md."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from koordpolicy.cluster.nodes import Rows
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table.access_path import AccessPath, access_path
from koordpolicy.scheduler.cycle import Cycle, CycleProblem
from koordpolicy.scheduler.evaluation.evaluate import evaluate
from koordpolicy.scheduler.evaluation.evaluation import Evaluation
from koordpolicy.scheduler.evaluation.incremental import IncrementalEvaluator
from koordpolicy.scheduler.evaluation.keys import Fingerprint, cache_keys_of, fingerprint_of, hold
from koordpolicy.scheduler.plugins import ParameterError
from koordpolicy.scheduler.step import Step

_ENTRIES: Final = 16
"""Kinds of pods that are remembered at once."""

_ANY_ROW: Final = np.zeros(1, np.int64)
"""Asked about where no node has changed, but what is seen beyond nodes has."""


@dataclass(slots=True, eq=False)
class _Entry:
    """What is known of pods with this fingerprint, as of a version of the table."""

    fingerprint: Fingerprint
    evaluation: Evaluation
    version: int
    incremental: IncrementalEvaluator | None = None

    def refreshed(self, cycle: Cycle, table: NodeTable) -> bool:
        """Bring it up to date; false when it is better to begin anew. Raises CycleProblem."""
        known, touched = self.evaluation, table.touched_since(self.version)
        if touched is None or known.nodes != len(table):
            return False
        try:
            keys = cache_keys_of(cycle)
        except (CelError, ParameterError, ObjectError):
            return False  # whoever evaluates anew will say what is wrong
        if len(touched) or not hold(known.cache_keys, keys):
            by_rows, changed = not (keys or known.cache_keys), table.changed_since(self.version)
            path = access_path(len(touched), len(table), ready=by_rows)
            if path is AccessPath.ALL:
                return False
            followed = (
                path is AccessPath.ONE_BY_ONE
                and by_rows
                and changed is not None
                and self._follow(cycle, table, touched, changed)
            )
            if not followed and not self._overlay(cycle, table, touched, changed):
                return False
        self.version = table.version
        return True

    def _follow(self, cycle: Cycle, table: NodeTable, rows: Rows, changed: frozenset[str]) -> bool:
        """Bring it up to date node by node, if that is possible."""
        ranking = self.evaluation.ranking()
        if ranking is None:
            return False
        if self.incremental is None:
            try:
                self.incremental = IncrementalEvaluator(cycle, self.evaluation, ranking)
            except (CelError, ParameterError, ObjectError):
                return False
        return self.incremental.refresh(table, rows.tolist(), changed)

    def _overlay(self, cycle: Cycle, table: NodeTable, rows: Rows, changed: frozenset[str] | None) -> bool:
        """Bring it up to date by arrays, if what is said of these rows can be laid over what was said of all."""
        self.incremental = None
        if not len(table) or cycle.profile.mixed:
            return False
        rows = rows if len(rows) else _ANY_ROW
        return self.evaluation.overlay(
            evaluate(cycle, table, rows, known=self.evaluation, changed=changed), rows
        )


class EvaluationCache:
    """The evaluations of one profile and table by kinds of pods, the latest first.

    A kind is kept from its second pod on: pods that all differ leave nothing behind, so that the arrays of one
    decision serve the next while they are still in the processor's cache.
    """

    __slots__ = ("_entries", "_of", "_seen")

    def __init__(self) -> None:
        self._of: tuple[Sequence[Step], NodeTable] | None = None
        self._entries: list[_Entry] = []
        self._seen: deque[Fingerprint] = deque(maxlen=_ENTRIES)

    def get(self, cycle: Cycle, table: NodeTable) -> Evaluation:
        """What `evaluate` gives about all nodes. It is the cache's own, and valid until the next call. Raises CycleProblem."""
        try:
            fingerprint = fingerprint_of(cycle)
        except ObjectError as problem:
            raise CycleProblem.of(problem) from problem
        if self._of is None or self._of[0] is not cycle.profile.filters or self._of[1] is not table:
            self._of = cycle.profile.filters, table
            self._entries.clear()
            self._seen.clear()
        entries = self._entries
        at = next((at for at, one in enumerate(entries) if one.fingerprint == fingerprint), None)
        found = None if at is None else entries.pop(at)
        if found is None or not found.refreshed(cycle, table):
            found = _Entry(fingerprint, evaluate(cycle, table), table.version)
        if at is not None or fingerprint in self._seen:
            entries.insert(0, found)
            del entries[_ENTRIES:]
        else:
            self._seen.append(fingerprint)
        return found.evaluation
