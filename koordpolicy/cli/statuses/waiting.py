"""Pods that wait for a node, by what schedulers say of them."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import CONDITION_SCHEDULED

GATED: Final = "held by scheduling gates"
UNSEEN: Final = "no scheduler has spoken of them"

_COUNTED: Final = re.compile(r"(\d+) (.+)")
_OVER_NODES: Final = " nodes are available: "
_MOST_CHARACTERS: Final = 100
"""Of a reason that is told as it stands; what schedulers wrote may be a page long."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Pods without a node, how many by the first reason of each, and how long the oldest has waited, in nanoseconds."""

    pods: int
    oldest: int
    reasons: tuple[tuple[str, int], ...]
    """The most frequent first."""


def waiting_pods(pods: Iterable[Pod], now: int) -> Waiting:
    """Of those that are not over; `now` in nanoseconds since 1970."""
    reasons: dict[str, int] = defaultdict(int)
    count, oldest = 0, 0
    for pod in pods:
        if pod.node_name or pod.terminal:
            continue
        count += 1
        reasons[_reason(pod)] += 1
        oldest = max(oldest, now - (pod.created_at if pod.created_at is not None else now))
    by_number = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return Waiting(count, oldest, tuple(by_number))


def _reason(pod: Pod) -> str:
    """What keeps a pod from most nodes, without their number, so that many pods have one reason."""
    condition = pod.condition(CONDITION_SCHEDULED)
    if condition is None or condition.status != "False":
        return UNSEEN
    if condition.reason == "SchedulingGated":
        return GATED
    said = condition.message
    _, found, over_nodes = said.partition(_OVER_NODES)
    if not found:
        return said[:_MOST_CHARACTERS] or condition.reason or UNSEEN
    parts = [_COUNTED.fullmatch(one) for one in over_nodes.partition(". ")[0].rstrip(".").split(", ")]
    counted = [(int(one[1]), one[2]) for one in parts if one is not None]
    return max(counted, key=lambda one: one[0])[1] if counted else over_nodes[:_MOST_CHARACTERS]
