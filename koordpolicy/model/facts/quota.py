"""Fact records of elastic quotas and of those around them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from koordpolicy.model.amounts import add_to, all_within
from koordpolicy.model.facts.record import Record
from koordpolicy.model.quota import Quota

MOST_PODS = 10
"""How many names of pods a quota's record shows at most."""


@dataclass(frozen=True, slots=True)
class QuotaState:
    """What the cluster says of a quota beside its object.

    `known` says whether the tree has a quota of that name, `foreign` are those of its namespaces that are bound to
    another one, `pods` the names of pods with its label. `bound` and `guarantee_fits` are facts as they stand.
    """

    known: bool = True
    foreign: Sequence[str] = ()
    pods: Sequence[str] = ()
    bound: bool = False
    guarantee_fits: bool = True


def quota_facts(quota: Quota, state: QuotaState) -> Record:
    """What follows from a quota and its state."""
    record: Record = {
        "name": quota.name,
        "namespace": quota.namespace,
        "labels": quota.labels,
        "annotations": quota.annotations,
        "known": state.known,
        "parent": quota.parent,
        "tree": quota.tree,
        "isParent": quota.is_parent,
        "isRoot": quota.is_root,
        "lends": quota.lends,
        "forced": quota.forced,
        "namespaces": list(quota.namespaces),
        "foreignNamespaces": list(state.foreign),
        "strictKeys": list(quota.strict_keys),
        "max": quota.max,
        "min": quota.min,
        "guaranteed": quota.guaranteed,
        "used": quota.used,
        "childRequest": quota.child_request,
        "pods": list(state.pods[:MOST_PODS]),
        "bound": state.bound,
        "guaranteeFits": state.guarantee_fits,
    }
    if quota.shared_weight is not None:
        record["sharedWeight"] = quota.shared_weight
    if quota.total is not None:
        record["total"] = quota.total
    if quota.admission is not None:
        record["admission"] = quota.admission
    return record


def quota_group_facts(quotas: Iterable[Quota]) -> Record:
    """Quotas that stand together, by name, with what they are guaranteed together."""
    ordered = sorted(quotas, key=lambda one: one.name)
    total: dict[str, int] = {}
    for quota in ordered:
        add_to(total, quota.min)
    return {
        "count": len(ordered),
        "quotas": [quota_facts(quota, QuotaState()) for quota in ordered],
        "min": all_within(total),
    }
