"""Reservations in memory at 5,000 nodes, one on each: pods that own none of them, and pods that own one each, beside plain pods
where there are none, in the same run. CPU time is what counts: the parts of the work take turns, and each is the best of several.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from koordpolicy.cluster.event_handlers import EVENT_HANDLERS, handle
from koordpolicy.kube import Object
from koordpolicy.kube.resources import RESERVATIONS
from koordpolicy.model.pod import Container, Pod
from koordpolicy.scheduler import Scheduler
from tests.benchmarks.jobs import NODES, scheduler
from tests.benchmarks.measure import Row
from tests.vectors.policies import graph

COUNT, PARTS = 100, 5
_HANDLER = next(one for one in EVENT_HANDLERS if one.resource == RESERVATIONS)


def run() -> Iterator[Row]:
    """From the news of a pod to its decision."""
    ways = {
        "plain pods, no Reservations": (scheduler(graph()), False),
        f"plain pods beside {NODES} Reservations": (_reserved(), False),
        f"owners, each of one of {NODES} Reservations": (_reserved(), True),
    }
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for part in range(PARTS):
        for way, (made, own) in ways.items():
            pods = [_pod(f"p{part}-{at}", part * COUNT + at, own=own) for at in range(COUNT)]
            begin = time.process_time()
            _placed(made, pods)
            spent[way].append(time.process_time() - begin)
    plain = min(next(iter(spent.values())))
    for way, times in spent.items():
        best = min(times)
        yield {
            "what": f"{COUNT * PARTS} {way}",
            "µs/pod": best / COUNT * 1e6,
            "pods/s": round(COUNT / best),
            "of plain": best / plain,
        }


def _reserved() -> Scheduler:
    made = scheduler(graph())
    for at in range(NODES):
        assert handle(_HANDLER, made, _reservation(at)) is None
    return made


def _reservation(at: int) -> Object:
    resources = {"requests": {"cpu": "2", "memory": "4Gi"}}
    return {
        "metadata": {"name": f"r{at}", "uid": f"r{at}"},
        "spec": {
            "template": {
                "spec": {"schedulerName": "koord-scheduler", "containers": [{"resources": resources}]}
            },
            "owners": [{"labelSelector": {"matchLabels": {"owner": f"o{at}"}}}],
            "ttl": "0s",
        },
        "status": {
            "phase": "Available",
            "nodeName": f"node-{at:04}",
            "allocatable": resources["requests"],
        },
    }


def _pod(name: str, at: int, *, own: bool) -> Pod:
    asked = {"cpu": 2_000, "memory": 4 << 30}
    labels = {"owner" if own else "team": f"o{at}"}  # labels make pods differ, and those of others do as much
    pod = Pod(
        name,
        uid=name,
        priority=9500,
        scheduler_name="koord-scheduler",
        containers=(Container("main", requests=asked, limits=asked),),
    )
    return replace(pod, labels=labels)


def _placed(made: Scheduler, pods: Sequence[Pod]) -> None:
    for pod in pods:
        made.set_pod(pod)
    placed = 0
    while (decision := made.schedule_one()) is not None:
        placed += decision.placed
    assert placed == len(pods), f"only {placed} of {len(pods)} pods were placed"
