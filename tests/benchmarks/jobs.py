"""Jobs in memory at 5,000 nodes: gangs planned in a network, beside plain pods in the same run.

A network has 20 spines of 25 blocks of 10 nodes. CPU time is what counts: the rounds of what is compared alternate, and each is the
best of several.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence

from koordpolicy.algorithms.gathering import GangNetwork, Gathering, GatherKey
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.network_topology import NODE_LAYER, GatherRule, NetworkLayer, NetworkTopology
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Container, Pod
from koordpolicy.runtime.collector import keep_what_is_there
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.plugins.topology.plan import GangPlan, Planner
from tests.benchmarks.measure import Row
from tests.benchmarks.scheduling import NOW, pack

NODES = 5_000
SIZES = (8, 32, 100)
ROUNDS = 7

_TOPOLOGY = NetworkTopology(
    "default",
    (
        NetworkLayer(NODE_LAYER, "BlockLayer"),
        NetworkLayer("BlockLayer", "SpineLayer", ("block",)),
        NetworkLayer("SpineLayer", "", ("spine",)),
    ),
)
_GATHERED = GangNetwork(
    (GatherRule("SpineLayer", must=True),),
    Gathering(
        candidates=(GatherKey.MOST_EXISTING, GatherKey.LEAST_ROOM, GatherKey.HIGHEST_SCORE),
        filling=(GatherKey.MOST_EXISTING, GatherKey.MOST_ROOM, GatherKey.HIGHEST_SCORE),
    ),
)


def run() -> Iterator[Row]:
    """Gangs of several sizes, planned in the network and one of them after the other as plain pods."""
    yield from _networks()


def _networks() -> Iterator[Row]:
    made = scheduler()
    framework = made.framework
    planner = Planner(framework.cache, framework.filters)
    for size in SIZES:
        for kind, differ in (("equal", False), ("all differ", True)):
            views = [framework.view(pod) for pod in _pods(f"g{size}", size, differ=differ)]

            def plan(views: Sequence[PodView] = views) -> None:
                assert isinstance(planner.plan(views, _GATHERED, NOW), GangPlan)

            def alone(views: Sequence[PodView] = views) -> None:
                for view in views:
                    assert framework.decide(view).placed

            planned, plain = _alternating(plan, alone)
            yield {
                "what": f"a gang of {size} in one spine, pods {kind}",
                "plan ms": planned * 1e3,
                "plan µs/pod": planned / size * 1e6,
                "plain decision µs/pod": plain / size * 1e6,
                "of a plain one": planned / plain,
            }


def scheduler() -> Scheduler:
    """A scheduler of the built-in profile that knows the nodes of a network, half full, each with a report."""
    chance = random.Random(1)
    made = Scheduler(pack(), lambda: NOW, draw=chance.randrange, explained=0, refusals=False)
    for at in range(NODES):
        name = f"node-{at:04}"
        made.set_node(
            Node(
                name,
                labels={"kubernetes.io/hostname": name, "spine": f"s{at // 250}", "block": f"b{at // 10}"},
                allocatable={"cpu": 96_000, "memory": 512 << 30, "pods": 256},
            )
        )
        made.set_metric(NodeMetric(name, updated_at=NOW, node_usage={"cpu": 9_000, "memory": 9 << 30}))
        taken = {"cpu": chance.randrange(0, 80_000), "memory": chance.randrange(400) << 30}
        held = (Container("main", requests=taken),)
        made.set_pod(Pod(f"there-{at}", uid=f"there-{at}", node_name=name, phase="Running", containers=held))
    made.set_state(lambda state: state.network.set_topology(_TOPOLOGY), Event.NETWORK_CHANGED)
    keep_what_is_there()
    return made


def _pods(series: str, count: int, *, differ: bool) -> Iterator[Pod]:
    for at in range(count):
        asked = {"cpu": 4_000 + (10 * at if differ else 0), "memory": 8 << 30}
        yield Pod(
            f"{series}-{at:03}",
            uid=f"{series}-{at}",
            labels={"job": series},
            priority=9500,
            scheduler_name="koord-scheduler",
            containers=(Container("main", requests=asked, limits=asked),),
        )


def _alternating(one: Callable[[], None], other: Callable[[], None]) -> tuple[float, float]:
    """CPU seconds of each, the best of rounds that take turns."""
    spent = [(_cpu(one), _cpu(other)) for _ in range(ROUNDS)]
    return min(first for first, _ in spent), min(second for _, second in spent)


def _cpu(action: Callable[[], None]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin
