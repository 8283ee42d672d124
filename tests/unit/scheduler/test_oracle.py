"""What the scheduler says of random clusters is what the oracle says, however they came about."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.model.pod import read_pod
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler import Scheduler
from tests.differential_scheduling.case import Object, key_of
from tests.differential_scheduling.compare import differences
from tests.differential_scheduling.drawing import draw
from tests.differential_scheduling.oracle import Cluster, judgement
from tests.differential_scheduling.ours import evaluate, hear, hear_no_more, policies

GRAPH = policies()
FEW = settings(max_examples=25, deadline=None)
SEEDS = st.integers(0, 2**32)


def told(objects: list[Object], order: Random, *, quick: bool = False) -> Scheduler:
    """A scheduler that heard of objects in some order; a quick one explains nothing."""
    explained, refusals = (0, False) if quick else (100, True)
    scheduler = Scheduler(GRAPH, lambda: 1_800_000_000 * NANOSECONDS, explained=explained, refusals=refusals)
    for obj in order.sample(objects, len(objects)):
        hear(scheduler, obj)
    return scheduler


def agrees(scheduler: Scheduler, objects: list[Object], pod: Object) -> None:
    """The scheduler says of a pod what the oracle says: nodes, reasons, who would have to go, or why nobody."""
    cluster = Cluster(objects)
    assert list(differences(evaluate(scheduler, pod), judgement(pod, cluster), cluster)) == []


@FEW
@given(SEEDS)
def test_a_cluster_as_it_stands(seed: int) -> None:
    case = draw(seed, 0, 6)
    scheduler = told(list(case.objects), Random(seed))
    for pod in case.pods:
        agrees(scheduler, list(case.objects), pod)


@FEW
@given(SEEDS)
def test_a_cluster_that_changes_all_the_time(seed: int) -> None:
    order, case = Random(seed), draw(seed, 0, 4)
    # The same names in another cluster: what each object changes into, or what comes anew.
    others = {(obj["kind"], key_of(obj)): obj for obj in draw(seed + 1, 0, 4).objects}
    there = {(obj["kind"], key_of(obj)): obj for obj in case.objects}
    # In the same order, since that is what breaks ties.
    full, quick = (told(list(there.values()), Random(seed), quick=quick) for quick in (False, True))
    for _ in range(16):
        key = order.choice(sorted({*there, *others}))
        before, after = there.get(key), others.get(key)
        # What is there becomes another or goes; what has become another may come back as it was.
        if before is not None and (after is None or order.random() < 0.3):
            del there[key]
            for scheduler in (full, quick):
                hear_no_more(scheduler, before)
        else:
            assert after is not None
            there[key] = after
            for scheduler in (full, quick):
                hear(scheduler, after)
        if before is not None:
            others[key] = before
        objects = list(there.values())
        for pod in case.pods:
            decided, quickly = (scheduler.framework.decide(read_pod(pod)) for scheduler in (full, quick))
            assert (quickly.node, quickly.feasible) == (decided.node, decided.feasible)
            agrees(full, objects, pod)
