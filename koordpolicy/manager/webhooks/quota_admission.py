"""What a pod counts for in its quota where it is created, and how far pods of one quota fit together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koordpolicy.algorithms.quota_admission import QuotaVerdict, admit
from koordpolicy.cluster.quota_of_pod import KIND, quota_record
from koordpolicy.graph import RuleGraph
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.quota import Quota
from koordpolicy.model.reading import Amounts


@dataclass(frozen=True, slots=True)
class QuotaDemand:
    """What one pod counts for, and the limit that holds for it, by resource name."""

    request: Amounts
    limit: Amounts


def demand_of(graph: RuleGraph, quota: Quota, roots: Mapping[str, Any]) -> QuotaDemand | None:
    """What policy says of a pod, whose records are `roots`; None where its quota is not looked at. Raises `CelError`."""
    about = graph.about(KIND, "", {**roots, "quota": quota_record(quota.name, quota)})
    if not about.value("admission.tracked"):
        return None
    return QuotaDemand(about.value("admission.request") or {}, about.value("admission.limit") or {})


def admit_pods(quota: Quota, demands: Sequence[QuotaDemand]) -> tuple[list[str], Amounts]:
    """Admit pods of one quota in order: for each why it is refused, empty when it is not, and what then counts as used."""
    verdicts, total = admit(
        [one.request for one in demands], [one.limit for one in demands], quota.child_request
    )
    return [_refusal(quota, one, verdict) for one, verdict in zip(demands, verdicts, strict=True)], total


def _refusal(quota: Quota, demand: QuotaDemand, verdict: QuotaVerdict) -> str:
    if not verdict.exceeded:
        return ""
    requested, used, limited = (
        _listed({name: amounts.get(name, 0) for name in verdict.exceeded})
        for amounts in (demand.request, verdict.used, demand.limit)
    )
    return f"exceeded quota: {quota.namespace}/{quota.name}, requested: {requested}, used: {used}, limited: {limited}"


def _listed(amounts: Amounts) -> str:
    return ",".join(f"{name}={amount_text(name, number)}" for name, number in sorted(amounts.items()))
