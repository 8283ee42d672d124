"""What is counted of gangs and quotas, for a process's metrics."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from koordpolicy.cluster.quota_policy import KeptQuota
from koordpolicy.cluster.quotas import Quotas
from koordpolicy.model.protocol import QUOTA_DOMAIN
from koordpolicy.model.reading import NOTHING
from koordpolicy.runtime.counting import Sample
from koordpolicy.runtime.metrics.registry import Metrics
from koordpolicy.scheduler.plugins.gang.gangs import Gangs
from koordpolicy.scheduler.quota_upkeep import figures

_QUOTAS: Final = "scheduler_elastic_quota_status"
_AT_ONCE: Final = 200
"""Quotas that are looked at before others get their turn."""
_STEP: Final = 100
_LARGEST: Final = 1000


class JobMetrics:
    """Shows them. `gangs` and `quotas` give those of now. Once for the metrics of a process."""

    def __init__(
        self, metrics: Metrics, gangs: Callable[[], Gangs | None], quotas: Callable[[], Quotas]
    ) -> None:
        self._metrics = metrics
        self._gangs = gangs
        self._quotas = quotas
        self._rows: list[Sample] = []
        metrics.show_elsewhere(_QUOTAS, self)

    def samples(self) -> list[Sample]:
        """The figures of quotas as they were when they were looked at last; from any thread."""
        return self._rows

    async def look(self) -> None:
        """Take up how gangs and quotas stand now."""
        gangs = self._gangs()
        if gangs is not None:
            self._metrics.set("scheduler_waiting_gang_group_number", gangs.book.waiting_groups())
            for ended in gangs.timings.rounds():
                self._metrics.observe(
                    "scheduler_gang_schedule_cycle_duration_seconds",
                    ended.seconds,
                    reason=ended.result,
                    job_size=size_text(ended.pods),
                )
            for rounds in gangs.timings.rounds_until_placed():
                self._metrics.observe("koordpolicy_scheduler_gang_rounds", float(rounds))
            for ended in gangs.timings.searches():
                self._metrics.observe(
                    "scheduler_job_preemption_duration_seconds", ended.seconds, result=ended.result
                )
        rows: list[Sample] = []
        quotas = self._quotas()
        for at, kept in enumerate(list(quotas) if quotas.active else ()):
            if at % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if kept.quota.name in quotas:
                rows += quota_rows(quotas, kept)
        self._rows = rows


def size_text(pods: int) -> str:
    """`0`, `1-100`, `101-200`, ... `1000+`."""
    if pods <= 0:
        return "0"
    if pods > _LARGEST:
        return f"{_LARGEST}+"
    first = (pods - 1) // _STEP * _STEP
    return f"{first + 1}-{first + _STEP}"


def quota_rows(quotas: Quotas, kept: KeptQuota) -> Iterator[Sample]:
    """The figures of one quota by resource and field."""
    terms, quota = kept.terms, kept.quota
    account = quotas.sums(quota.name).get(quota.name)
    shown = {key.removeprefix(QUOTA_DOMAIN): amounts for key, amounts in figures(quotas, quota.name).items()}
    shown |= {
        "used": NOTHING if account is None else account.used,
        "min": terms.min,
        "max": terms.max,
        "sharedWeight": terms.weight,
    }
    parent = "true" if quota.is_parent else "false"
    for field, amounts in shown.items():
        for resource, number in amounts.items():
            yield (quota.name, resource, kept.tree, parent, terms.parent, field), float(number)
