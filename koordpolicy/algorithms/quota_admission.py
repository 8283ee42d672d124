"""What pods may take of a quota where they are created, and how often a write is tried again."""

from collections.abc import Sequence
from dataclasses import dataclass

from koordpolicy.model.amounts import add_to
from koordpolicy.model.reading import Amounts


@dataclass(frozen=True, slots=True)
class QuotaVerdict:
    """Whether one pod fits. `exceeded` are the resources that it exceeds, sorted, `used` what counted before it."""

    exceeded: tuple[str, ...]
    used: Amounts


def admit(
    requests: Sequence[Amounts], limits: Sequence[Amounts], used: Amounts
) -> tuple[list[QuotaVerdict], Amounts]:
    """Admit pods of one quota in order: a verdict for each, and what is used with those that fit.

    `requests` and `limits` have one list of amounts a pod. A resource that a pod does not request, or that has no limit, is
    not looked at; one that is not used yet counts as 0.
    """
    total = dict(used)
    verdicts = []
    for request, limit in zip(requests, limits, strict=True):
        exceeded = sorted(
            name
            for name, number in request.items()
            if name in limit and total.get(name, 0) + number > limit[name]
        )
        verdicts.append(QuotaVerdict(tuple(exceeded), dict(total)))
        if not exceeded:
            add_to(total, request)
    return verdicts, total


def retry_budget(retries: int, pods: int) -> int:
    """How often a write for so many pods is tried again: once more for each doubling of them."""
    return retries + max(pods, 1).bit_length() - 1
