"""What was evaluation before: equal pods are evaluation again only on nodes that changed.

Two pods are equal when all that the profile reads of them is; then their answers can differ only on
rows of the table that were touched in between.
"""

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from koordpolicy.cluster.nodes import Rows
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.cycle import (
    Cycle,
    CycleProblem,
    Evaluation,
    cache_keys_of,
    evaluate,
    stale,
    unchanged,
)
from koordpolicy.scheduler.following import Following
from koordpolicy.scheduler.plugins import ParameterError, Verdicts
from koordpolicy.scheduler.profile import SPEC
from koordpolicy.scheduler.standing import Standing

_TEMPLATES: Final = 16
"""Kinds of pods that are remembered at once."""

_ONE_BY_ONE: Final = 16
"""Nodes up to which judging one by one is quicker than by arrays."""

Fingerprint = tuple[Any, ...]


@dataclass(slots=True, eq=False)
class _Known:
    fingerprint: Fingerprint
    evaluation: Evaluation
    version: int
    rows: int
    standing: Standing | None = None
    following: Following | None = None
    owned: bool = False
    """Whether the arrays are ours to write: what columns gave may be views of the table, which others read."""


class Memory:
    """The answers about the latest kinds of pods, the latest first.

    A kind is kept from its second pod on: pods that all differ leave nothing behind, so that the arrays of one
    decision serve the next while they are still in the processor's cache.
    """

    __slots__ = ("_known", "_latest", "_seen")

    def __init__(self) -> None:
        self._known: list[_Known] = []
        self._seen: deque[Fingerprint] = deque(maxlen=_TEMPLATES)
        self._latest: _Known | None = None

    def evaluation(self, cycle: Cycle, table: NodeTable) -> Evaluation:
        """What `evaluate` gives about all nodes. Raises CycleProblem."""
        try:
            fingerprint = _fingerprint(cycle)
        except ObjectError as problem:
            raise CycleProblem.of(problem) from problem
        self._latest = None
        known = self._known
        at = next((at for at, one in enumerate(known) if one.fingerprint == fingerprint), None)
        found = None if at is None else known.pop(at)
        if found is None or not _refreshed(found, cycle, table):
            found = _Known(fingerprint, evaluate(cycle, table), table.version, len(table))
        if at is not None or fingerprint in self._seen:
            known.insert(0, found)
            del known[_TEMPLATES:]
        else:
            self._seen.append(fingerprint)
        self._latest = found
        return found.evaluation

    def standing(self, cycle: Cycle, evaluation: Evaluation) -> Standing | None:
        """How the nodes stand by what was evaluation last; None when that says not enough."""
        known = self._latest
        if known is None or known.evaluation is not evaluation or not Standing.can(cycle, evaluation):
            return None
        if known.standing is None:
            known.standing = Standing(cycle, evaluation, known.rows)
        return known.standing


def _refreshed(known: _Known, cycle: Cycle, table: NodeTable) -> bool:
    """Bring remembered answers up to date; false when it is better to begin anew."""
    touched = table.touched_since(known.version)
    if touched is None or known.rows != len(table) or 2 * len(touched) > len(table):
        return False
    if _follows(known, cycle, table, touched):
        known.version = table.version
        return True
    known.standing = known.following = None
    if len(touched) or not unchanged(cycle, known.evaluation):
        if not len(table) or cycle.profile.mixed:
            return False
        rows = touched if len(touched) else np.zeros(1, np.int64)
        _own(known)
        changed = table.changed_since(known.version)
        fresh = evaluate(cycle, table, rows, known=known.evaluation, changed=changed)
        anew = _stale(cycle, known.evaluation, fresh)
        if not _fits(known.evaluation, fresh, anew):
            return False
        _lay_over(known.evaluation, fresh, rows, anew)
        known.evaluation.cache_keys = fresh.cache_keys
    known.version = table.version
    return True


def _follows(known: _Known, cycle: Cycle, table: NodeTable, touched: Rows) -> bool:
    """Bring them up to date node by node, if that is possible and quicker."""
    if known.standing is None or known.evaluation.cache_keys or len(touched) > _ONE_BY_ONE:
        return False
    changed = table.changed_since(known.version)
    try:
        if changed is None or cache_keys_of(cycle):
            return False
        if known.following is None:
            _own(known)
            known.following = Following(cycle, known.evaluation, known.standing)
    except (CelError, ParameterError, ObjectError):
        return False
    return known.following.refresh(table, touched.tolist(), changed)


def _fingerprint(cycle: Cycle) -> Fingerprint:
    """All that the answers about a node can depend on, beside the node."""
    profile, records = cycle.profile, cycle.records
    parts = _of_pod(cycle)
    if profile.reads_cluster:
        parts.append(records["cluster"])
    if profile.reads_now:
        parts.append(records["now"])
    return tuple(parts)


def _of_pod(cycle: Cycle) -> list[Any]:
    """The part of it that stays the same while the pod does."""
    profile, view, records = cycle.profile, cycle.view, cycle.records
    parts: list[Any] = list(map(records["pod"].get, profile.asked_facts))
    if SPEC in profile.pod_facts:
        parts.append(view.placement)
    parts += [view.pod.pod_requests, records["namespaceObject"]]
    return parts


def likeness(cycle: Cycle) -> bytes:
    """The same for pods of which a profile says the same, whenever it is asked.

    Raises ObjectError for a spec that cannot be read, CelError and ParameterError for parameters that cannot be had.
    """
    view, parts = cycle.view, _of_pod(cycle)
    if any(place.startswith("filter:") for place in cache_keys_of(cycle)):
        controller = view.pod.controller
        parts += [view.pod.namespace, sorted(view.pod.labels.items())]
        parts += ["" if controller is None else controller.uid, view.neighbours, view.ports, view.volumes]
    return hashlib.blake2b(repr(parts).encode(errors="surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class _Stale:
    """Which filters and scores were evaluation anew of all nodes, since they look beyond those that changed."""

    filters: Sequence[bool]
    scores: Sequence[bool]


def _stale(cycle: Cycle, known: Evaluation, fresh: Evaluation) -> _Stale:
    if not known.cache_keys and not fresh.cache_keys:
        return _Stale([False] * len(known.verdicts), [False] * len(known.scores))
    filters, scores = cycle.profile.filters, cycle.profile.scores
    return _Stale(
        [stale(known, fresh.cache_keys, step.place) for step in filters],
        [stale(known, fresh.cache_keys, step.place) for step in scores],
    )


def _fits(known: Evaluation, fresh: Evaluation, anew: _Stale) -> bool:
    """Whether fresh answers about some nodes can be laid over known ones; those evaluation `anew` are replaced."""
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


def _lay_over(known: Evaluation, fresh: Evaluation, rows: Rows, anew: _Stale) -> None:
    for at, (verdicts, news) in enumerate(zip(known.verdicts, fresh.verdicts, strict=True)):
        if anew.filters[at]:
            known.verdicts[at] = news
        elif verdicts is not None and news is not None and news is not verdicts:
            verdicts.refused[:, rows], verdicts.unresolvable[rows] = news.refused, news.unresolvable
    for accepted, also in zip(known.accepted, fresh.accepted, strict=True):
        if accepted is not None and also is not None:
            accepted[rows] = also
    for at, (scores, new) in enumerate(zip(known.scores, fresh.scores, strict=True)):
        if anew.scores[at]:
            known.scores[at] = new
        elif scores is not None and new is not None and new is not scores:
            scores[rows] = new


def _own(known: _Known) -> None:
    """Give it arrays of its own."""
    if known.owned:
        return
    known.owned, evaluation = True, known.evaluation
    evaluation.verdicts = [
        one if one is None else Verdicts(one.reasons, one.refused.copy(), one.unresolvable.copy())
        for one in evaluation.verdicts
    ]
    evaluation.accepted = [None if one is None else one.copy() for one in evaluation.accepted]
    evaluation.scores = [None if one is None else one.copy() for one in evaluation.scores]
