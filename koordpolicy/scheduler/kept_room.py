"""Evaluations of pods for which others make way: what those keep on their nodes counts as free, for these pods alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.nodes import Rows
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import Evaluation, Filtered, evaluate
from koordpolicy.scheduler.evaluation.answers import Scored
from koordpolicy.scheduler.plugins import Verdicts


def with_room_kept(cycle: Cycle, evaluation: Evaluation, cache: ClusterCache) -> Evaluation:
    """The answers about all nodes, where those whose pods make way are asked about without these. Raises CycleProblem."""
    gone = makes_way(cycle, cache)
    if not gone:
        return evaluation
    rows = np.array(sorted(cache.table.index(node) for node in gone), dtype=np.int64)
    with cache.trial():
        cache.displace(*(key for keys in gone.values() for key in keys))
        fresh = evaluate(cycle, cache.table, rows)
        return replace(
            evaluation,
            filters=[
                _filtered(known, new, rows, evaluation.nodes)
                for known, new in zip(evaluation.filters, fresh.filters, strict=True)
            ],
            scores=[
                _scored(known, new, rows) for known, new in zip(evaluation.scores, fresh.scores, strict=True)
            ],
            cache_keys={**evaluation.cache_keys, **fresh.cache_keys},
        )


@contextmanager
def way_made(cycle: Cycle, cache: ClusterCache) -> Iterator[None]:
    """A trial in which those who make way for a pod are gone from their nodes. Raises CycleProblem."""
    gone = makes_way(cycle, cache) if cache.state.reservations.make_way else {}
    if not gone:
        yield
        return
    with cache.trial():
        cache.displace(*(key for keys in gone.values() for key in keys))
        yield


def makes_way(cycle: Cycle, cache: ClusterCache) -> dict[str, list[PodKey]]:
    """The pods that make way, by node. Raises CycleProblem."""
    found: dict[str, list[PodKey]] = {}
    for step in cycle.profile.filters:
        plugin = step.plugin
        if plugin is None or plugin.makes_way is None or cycle.state is None:
            continue
        if step.always or step.enabled.value(cycle.records) is not False:
            said = plugin.makes_way(
                cycle.view,
                cycle.state,
                lambda step=step: step.values(cycle.records),  # type: ignore[misc]
            )
            for node, keys in said.items():
                if node in cache:
                    found.setdefault(node, []).extend(keys)
    return found


def _filtered(known: Filtered, fresh: Filtered, rows: Rows, nodes: int) -> Filtered:
    """What a filter says of all nodes, of some rows what it says now."""
    verdicts, accepted = known.verdicts, known.accepted
    if verdicts is not None or fresh.verdicts is not None:
        verdicts = _laid_over(verdicts, fresh.verdicts, rows, nodes)
    if accepted is not None and fresh.accepted is not None:
        accepted = accepted.copy()
        accepted[rows] = fresh.accepted
    return Filtered(known.step, verdicts, accepted, known.failed or fresh.failed)


def _laid_over(known: Verdicts | None, fresh: Verdicts | None, rows: Rows, count: int) -> Verdicts:
    sides = [one for one in (known, fresh) if one is not None]
    reasons = tuple(dict.fromkeys(reason for one in sides for reason in one.reasons))
    refused, unresolvable = np.zeros((len(reasons), count), np.bool_), np.zeros(count, np.bool_)
    if known is not None:
        for at, reason in enumerate(known.reasons):
            refused[reasons.index(reason)] |= known.refused[at]
        unresolvable |= known.unresolvable
    refused[:, rows], unresolvable[rows] = False, False
    if fresh is not None:
        for at, reason in enumerate(fresh.reasons):
            refused[reasons.index(reason), rows] |= fresh.refused[at]
        unresolvable[rows] = fresh.unresolvable
    return Verdicts(reasons, refused, unresolvable)


def _scored(known: Scored, fresh: Scored, rows: Rows) -> Scored:
    if known.scores is None or fresh.scores is None:
        return known
    scores = np.array(known.scores)
    if scores.dtype != fresh.scores.dtype:
        scores = scores.astype(np.result_type(scores, fresh.scores))
    scores[rows] = fresh.scores
    failed = known.failed
    if failed is not None or fresh.failed is not None:
        failed = np.zeros(len(scores), np.bool_) if failed is None else failed.copy()
        failed[rows] = False if fresh.failed is None else fresh.failed
    return Scored(known.step, scores, known.weight, failed)
