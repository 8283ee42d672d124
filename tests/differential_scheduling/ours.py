"""Our scheduler as a evaluate: it hears the objects through its event handlers, and is asked pod by pod."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from koordpolicy.cluster.event_handlers import EVENT_HANDLERS
from koordpolicy.graph import RuleGraph
from koordpolicy.scheduler.scheduler import Scheduler
from tests.differential_scheduling.case import SCHEDULER, Judgement, Object, Room, key_of
from tests.vectors.policies import document, graph

NOW: Final = 1_800_000_000 * 10**9
_MANY: Final = 10_000
_HANDLERS: Final = {handler.resource.kind: handler for handler in EVENT_HANDLERS}


@cache
def policies() -> RuleGraph:
    """The built-in pack, but for bands, which kube-scheduler does not know."""
    return graph(
        document(
            "SchedulingProfile",
            SCHEDULER,
            {"schedulerName": SCHEDULER, "parameters": {"preemptionAcrossBands": True}},
        )
    )


class Ours:
    """A scheduler that knows a cluster. It is asked about one pod after another, and remembers as it does."""

    def __init__(self, objects: Sequence[Object]) -> None:
        self._scheduler = Scheduler(policies(), lambda: NOW, profile=SCHEDULER, explained=_MANY)
        for handler in EVENT_HANDLERS:
            for obj in objects:
                if obj["kind"] == handler.resource.kind:
                    handler.on_update(self._scheduler, obj)

    def evaluate(self, pod: Object) -> Judgement:
        """What comes of a pod. It is taken away again afterwards, wherever it went."""
        return evaluate(self._scheduler, pod)


def hear(scheduler: Scheduler, obj: Object) -> None:
    """An object is new or has changed."""
    _HANDLERS[obj["kind"]].on_update(scheduler, obj)


def hear_no_more(scheduler: Scheduler, obj: Object) -> None:
    """An object is gone."""
    _HANDLERS[obj["kind"]].on_delete(scheduler, obj)


def evaluate(scheduler: Scheduler, pod: Object) -> Judgement:
    """What comes of a pod, which is taken away again afterwards. The scheduler has to list all good nodes."""
    hear(scheduler, pod)
    decision = scheduler.schedule_one()
    assert decision is not None, "the pod does not wait"
    assert decision.pod == key_of(pod)
    hear_no_more(scheduler, pod)
    if decision.problem:
        return Judgement(frozenset(), {decision.problem: decision.nodes}, {}, "", decision.message)
    feasible = frozenset(one.node for one in decision.best)
    assert len(feasible) == decision.feasible
    if feasible:
        return Judgement(feasible)
    counted: Counter[str] = Counter()
    for one in decision.refusals:
        counted[one.reason] += one.nodes
    rooms, made = {}, decision.preemption
    if made is not None:
        rooms[made.node] = Room(frozenset(one.pod for one in made.victims), made.violations)
    chosen = "" if made is None else made.node
    return Judgement(feasible, dict(counted), rooms, chosen, decision.message)


def counts_of(message: str, nodes: int) -> dict[str, int]:
    """The nodes by reason that a condition's message tells, of so many. A reason without a number is about all."""
    body = message.split(" nodes are available: ", 1)[-1].split(" preemption: ", 1)[0].rstrip(". ")
    return dict(_counted(body, nodes))


def _counted(body: str, nodes: int) -> Iterator[tuple[str, int]]:
    if not re.match(r"\d+ ", body):
        yield body, nodes
        return
    for part in re.split(r", (?=\d+ )", body):
        number, _, text = part.partition(" ")
        yield text, int(number)
