"""Comparisons while they go on: compared aside, and shown."""

import asyncio
from typing import Final

from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.rollout.shadow import Comparison

_DRAIN: Final = 0.2
"""Seconds between two goes at the inputs that wait to be compared."""


async def compare_aside(comparison: Comparison, metrics: Metrics) -> None:
    """Compare what is offered, off the loop that decides, and show it, until cancelled."""
    while True:
        await asyncio.sleep(_DRAIN)
        if comparison.waits:
            await asyncio.to_thread(comparison.drain)
            show_comparison(metrics, comparison)


def show_comparison(metrics: Metrics, comparison: Comparison) -> None:
    """What was compared by now, in metrics."""
    total = comparison.counts.total
    metrics.set("koordpolicy_rollout_compared", total.compared)
    metrics.set("koordpolicy_rollout_disagreements", total.different)
    metrics.set("koordpolicy_rollout_dropped", comparison.dropped)
