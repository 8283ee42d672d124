"""Why a pod is not within its quota, with numbers: for conditions, Events and explanations."""

from typing import Final

from koordpolicy.algorithms.quota_limits import ABOVE_OTHERS, NON_PREEMPTIBLE, PARENT, QuotaExcess
from koordpolicy.cluster.quota_pods import QuotaPod
from koordpolicy.cluster.quotas import Quotas
from koordpolicy.model.protocol import CPU
from koordpolicy.model.quantity import Notation, Quantity

_MOST: Final = 2
"""Quotas that are named as having more than their min at most."""


def why(quotas: Quotas, member: QuotaPod, found: QuotaExcess) -> str:
    """`team-a: 12 of 10 cpu in use, 1 more requested; team-b has 2 beyond its min`, of each resource that is exceeded."""
    of = found.of
    if found.stage == ABOVE_OTHERS:
        return f"{of.name}: it has quotas below it, and takes no pods of its own (QuotaTree.scheduling.ofParents)"
    parts = []
    for name in found.exceeded:
        has = f"{_shown(name, of.used.get(name, 0))} of {_shown(name, of.limit[name])} {name} in use"
        more = member.request.get(name, 0)
        parts.append(f"{has}, {_shown(name, more)} more requested" if more else has)
    text = f"{of.name}: {'; '.join(parts)}"
    if found.stage == NON_PREEMPTIBLE:
        return f"{text}, of the min that pods may have that are not preemptible"
    if found.stage == PARENT:
        text = f"{text} (above {member.quota})"
    return "; ".join((text, *_lent(quotas, of.name, found.exceeded)))


def _lent(quotas: Quotas, name: str, keys: tuple[str, ...]) -> list[str]:
    """Who has more than its min of what a quota lacks, the most first."""
    sums = quotas.sums(name)
    account = sums.get(name)
    if account is None or account.parent is None or not quotas[name].by_runtime:
        return []
    found = []
    for key in keys:
        for sibling, other in account.parent.children.items():
            used = other.used.get(key, 0)
            beyond = used - other.terms.min.get(key, 0)
            if sibling != name and beyond > 0 and used > 0:
                found.append((-beyond, sibling, key))
    return [
        f"{sibling} uses {_shown(key, -beyond)} {key} beyond its min"
        for beyond, sibling, key in sorted(found)[:_MOST]
    ]


def _shown(resource: str, number: int) -> str:
    return str(Quantity.of_milli(number) if resource == CPU else Quantity.of(number, Notation.BINARY))
