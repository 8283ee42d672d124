"""What was judged before: equal pods are judged again only on nodes that changed.

Two pods are equal when all that the profile reads of them is; then their answers can differ only on
rows of the table that were touched in between.
"""

from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import CycleProblem, Judged, Question, judge
from koordpolicy.scheduler.mechanisms import Verdicts
from koordpolicy.scheduler.nodes import Rows

_TEMPLATES: Final = 16
"""Kinds of pods that are remembered at once."""

Fingerprint = tuple[Any, ...]


@dataclass(slots=True)
class _Known:
    fingerprint: Fingerprint
    judged: Judged
    version: int
    rows: int


class Memory:
    """The answers about the latest kinds of pods, the latest first."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: list[_Known] = []

    def judged(self, question: Question, table: NodeTable) -> Judged:
        """What `judge` gives about all nodes. Raises CycleProblem."""
        try:
            fingerprint = _fingerprint(question)
        except ObjectError as problem:
            raise CycleProblem(str(problem)) from problem
        found = next((one for one in self._known if one.fingerprint == fingerprint), None)
        if found is not None:
            self._known.remove(found)
            if not self._refreshed(found, question, table):
                found = None
        if found is None:
            found = _Known(fingerprint, judge(question, table), table.version, len(table))
        self._known.insert(0, found)
        del self._known[_TEMPLATES:]
        return found.judged

    def _refreshed(self, known: _Known, question: Question, table: NodeTable) -> bool:
        """Bring remembered answers up to date; false when it is better to begin anew."""
        touched = table.touched_since(known.version)
        if touched is None or known.rows != len(table) or 2 * len(touched) > len(table):
            return False
        if len(touched):
            fresh = judge(question, table, touched)
            if not _fits(known.judged, fresh):
                return False
            _lay_over(known.judged, fresh, touched)
        known.version = table.version
        return True


def _fingerprint(question: Question) -> Fingerprint:
    """All that the answers about a node can depend on, beside the node."""
    profile, view, records = question.profile, question.view, question.records
    facts = records["pod"]
    parts: list[Any] = [facts.get(path) for path in sorted(profile.pod_facts) if path != "spec"]
    if "spec" in profile.pod_facts:
        parts.append(view.placement)
    parts += [view.pod.pod_requests, records["namespaceObject"]]
    if profile.reads_cluster:
        parts.append(records["cluster"])
    if profile.reads_now:
        parts.append(records["now"])
    return tuple(parts)


def _fits(known: Judged, fresh: Judged) -> bool:
    return (
        known.weights == fresh.weights
        and all(
            (one is None) == (other is None)
            and (one is None or other is None or one.reasons == other.reasons)
            for one, other in zip(known.verdicts, fresh.verdicts, strict=True)
        )
        and all(
            (one is None) == (other is None)
            for one, other in zip(known.accepted, fresh.accepted, strict=True)
        )
        and all(
            (one is None) == (other is None) for one, other in zip(known.scores, fresh.scores, strict=True)
        )
    )


def _lay_over(known: Judged, fresh: Judged, rows: Rows) -> None:
    for at, (verdicts, news) in enumerate(zip(known.verdicts, fresh.verdicts, strict=True)):
        if verdicts is not None and news is not None:
            refused, hopeless = verdicts.refused.copy(), verdicts.hopeless.copy()
            refused[:, rows], hopeless[rows] = news.refused, news.hopeless
            known.verdicts[at] = Verdicts(verdicts.reasons, refused, hopeless)
    known.accepted = [_laid(old, new, rows) for old, new in zip(known.accepted, fresh.accepted, strict=True)]
    known.scores = [_laid(old, new, rows) for old, new in zip(known.scores, fresh.scores, strict=True)]


def _laid(old: NDArray[Any] | None, new: NDArray[Any] | None, rows: Rows) -> NDArray[Any] | None:
    if old is None or new is None:
        return old
    # What columns gave may be a view of the table, which others read.
    values = old.copy()
    values[rows] = new
    return values
