"""What was judged before: equal pods are judged again only on nodes that changed.

Two pods are equal when all that the profile reads of them is; then their answers can differ only on
rows of the table that were touched in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from koordpolicy.mechanism.columns import Mask
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import CycleProblem, Judged, Question, judge, stale, unchanged
from koordpolicy.scheduler.mechanisms import Verdicts
from koordpolicy.scheduler.nodes import Rows
from koordpolicy.scheduler.standing import Standing

_TEMPLATES: Final = 16
"""Kinds of pods that are remembered at once."""

Fingerprint = tuple[Any, ...]


@dataclass(slots=True)
class _Known:
    fingerprint: Fingerprint
    judged: Judged
    version: int
    rows: int
    standing: Standing | None = None
    owned: bool = False
    """Whether the arrays are ours to write: what columns gave may be views of the table, which others read."""


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

    def standing(self, question: Question, judged: Judged) -> Standing | None:
        """How the nodes stand by what was judged last; None when that says not enough."""
        known = self._known[0] if self._known else None
        if known is None or known.judged is not judged or not Standing.can(question, judged):
            return None
        if known.standing is None:
            known.standing = Standing(question, judged, known.rows)
        return known.standing

    def _refreshed(self, known: _Known, question: Question, table: NodeTable) -> bool:
        """Bring remembered answers up to date; false when it is better to begin anew."""
        touched = table.touched_since(known.version)
        if touched is None or known.rows != len(table) or 2 * len(touched) > len(table):
            return False
        if len(touched) or not unchanged(question, known.judged):
            if not len(table) or question.profile.mixed:
                return False
            rows = touched if len(touched) else np.zeros(1, np.int64)
            if not known.owned:
                _own(known.judged)
                known.owned = True
            changed = table.changed_since(known.version)
            fresh = judge(question, table, rows, known=known.judged, changed=changed)
            anew = _stale(question, known.judged, fresh)
            if not _fits(known.judged, fresh, anew):
                return False
            others = rows if known.standing is None else _others(known.judged, fresh, rows, anew)
            before = (
                []
                if others is None
                else [None if scores is None else scores[others] for scores in known.judged.scores]
            )
            _lay_over(known.judged, fresh, rows, anew)
            known.judged.stamps = fresh.stamps
            if known.standing is not None and (
                others is None or not known.standing.refresh(known.judged, others, before)
            ):
                known.standing = None
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


@dataclass(frozen=True, slots=True)
class _Stale:
    """Which filters and scores were judged anew of all nodes, since they look beyond those that changed."""

    filters: Sequence[bool]
    scores: Sequence[bool]

    @property
    def any(self) -> bool:
        return any(self.filters) or any(self.scores)


def _stale(question: Question, known: Judged, fresh: Judged) -> _Stale:
    if not known.stamps and not fresh.stamps:
        return _Stale([False] * len(known.verdicts), [False] * len(known.scores))
    filters, scores = question.profile.filters, question.profile.scores
    return _Stale(
        [stale(known, fresh.stamps, f"filter:{step.name}") for step in filters],
        [stale(known, fresh.stamps, f"score:{step.name}") for step in scores],
    )


def _fits(known: Judged, fresh: Judged, anew: _Stale) -> bool:
    """Whether fresh answers about some nodes can be laid over known ones; those judged `anew` are replaced."""
    return (
        known.weights == fresh.weights
        and all(
            replaced
            or (
                (one is None) == (other is None)
                and (one is None or other is None or one.reasons == other.reasons)
            )
            for one, other, replaced in zip(known.verdicts, fresh.verdicts, anew.filters, strict=True)
        )
        and all(
            (one is None) == (other is None)
            for one, other in zip(known.accepted, fresh.accepted, strict=True)
        )
        and all(
            replaced or (one is None) == (other is None)
            for one, other, replaced in zip(known.scores, fresh.scores, anew.scores, strict=True)
        )
    )


def _others(known: Judged, fresh: Judged, rows: Rows, anew: _Stale) -> Rows | None:
    """The rows about which fresh answers may be others, `rows` and those that were judged anew and differ.

    None when those are too many to follow one by one.
    """
    if not anew.any:
        return rows
    differ: Mask = np.zeros(0, np.bool_)
    pairs: list[tuple[Any, Any]] = [
        (old.refused, new.refused) if old is not None and new is not None else (None, None)
        for old, new, replaced in zip(known.verdicts, fresh.verdicts, anew.filters, strict=True)
        if replaced and not (old is None and new is None)
    ]
    pairs += [
        (old, new)
        for old, new, replaced in zip(known.scores, fresh.scores, anew.scores, strict=True)
        if replaced and not (old is None and new is None)
    ]
    for old, new in pairs:
        if old is None or new is None or old.shape != new.shape:
            return None
        other = old != new
        other = other.any(axis=0) if other.ndim > 1 else other
        differ = differ | other if len(differ) else other
    if not len(differ):
        return rows
    differ[rows] = True
    found = np.flatnonzero(differ)
    return found if 2 * len(found) < len(differ) else None


def _lay_over(known: Judged, fresh: Judged, rows: Rows, anew: _Stale) -> None:
    for at, (verdicts, news) in enumerate(zip(known.verdicts, fresh.verdicts, strict=True)):
        if anew.filters[at]:
            known.verdicts[at] = news
        elif verdicts is not None and news is not None and news is not verdicts:
            verdicts.refused[:, rows], verdicts.hopeless[rows] = news.refused, news.hopeless
    for accepted, also in zip(known.accepted, fresh.accepted, strict=True):
        if accepted is not None and also is not None:
            accepted[rows] = also
    for at, (scores, new) in enumerate(zip(known.scores, fresh.scores, strict=True)):
        if anew.scores[at]:
            known.scores[at] = new
        elif scores is not None and new is not None and new is not scores:
            scores[rows] = new


def _own(judged: Judged) -> None:
    """Give it arrays of its own."""
    judged.verdicts = [
        one if one is None else Verdicts(one.reasons, one.refused.copy(), one.hopeless.copy())
        for one in judged.verdicts
    ]
    judged.accepted = [None if one is None else one.copy() for one in judged.accepted]
    judged.scores = [None if one is None else one.copy() for one in judged.scores]
