"""Facts about load: what nodes carry, what they permit, and what pods are estimated to use.

Loads and estimates are computed by the scheduler, as policy says; here they only get their names.
"""

from typing import Final, NamedTuple

from koordpolicy.model.amounts import all_within
from koordpolicy.model.estimation import estimation
from koordpolicy.model.facts.record import BASIC, Record, Times, paths, put_all
from koordpolicy.model.node import Node, usage_thresholds
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import Amounts, ObjectError

_LOAD: Final = paths("load", BASIC)
_PROD_LOAD: Final = paths("load.prod", BASIC)
_ESTIMATE: Final = paths("estimate", BASIC)


class Loads(NamedTuple):
    """The load of a node: by the last measurement, of prod pods alone, and over the windows that policy
    filters and scores by.
    """

    current: Amounts
    prod: Amounts
    filter: Amounts
    score: Amounts


def load_facts(loads: Loads) -> Record:
    """A node's load. A node without a metric has none: leave these facts away."""
    current, prod = all_within(loads.current), all_within(loads.prod)
    record: Record = {
        "resources.load": current,
        "resources.prodLoad": prod,
        "resources.filterLoad": all_within(loads.filter),
        "resources.scoreLoad": all_within(loads.score),
    }
    put_all(record, _LOAD, current)
    put_all(record, _PROD_LOAD, prod)
    return record


def estimate_facts(estimate: Amounts) -> Record:
    """What a pod is estimated to use."""
    record: Record = {"resources.estimate": estimate}
    put_all(record, _ESTIMATE, estimate)
    return record


def threshold_facts(node: Node, times: Times) -> Record:
    """The limits of load that a node's annotation sets. Groups it leaves empty are absent.

    An unreadable annotation sets none.
    """
    try:
        limits = usage_thresholds(node.annotations)
    except ObjectError:
        limits = None
    record: Record = {}
    if limits is None:
        return record
    for group, percents in (
        ("usage", limits.usage),
        ("prod", limits.prod_usage),
        ("aggregated", limits.aggregated),
    ):
        if percents:
            record[f"usageThresholds.{group}"] = {name: float(limit) for name, limit in percents.items()}
    if limits.aggregated:
        record["usageThresholds.aggregation"] = limits.aggregation
        record["usageThresholds.window"] = times.duration(limits.duration)
    return record


def estimation_facts(pod: Pod, times: Times) -> Record:
    """What a pod's annotations wish for its estimate. What is absent or unreadable is absent."""
    record: Record = {}
    if not pod.annotations:
        return record
    wishes = estimation(pod.annotations)
    if wishes.factors is not None:
        record["estimation.factors"] = wishes.factors
    if wishes.after_scheduled is not None:
        record["estimation.afterScheduled"] = times.duration(wishes.after_scheduled)
    if wishes.after_initialized is not None:
        record["estimation.afterInitialized"] = times.duration(wishes.after_initialized)
    return record
