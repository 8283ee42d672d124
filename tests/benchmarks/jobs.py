"""Jobs at 5,000 nodes: gangs, also planned in a network, and pods of quotas, beside plain pods in the same run; in memory, then end to
end.

A network has 20 spines of 25 blocks of 10 nodes. CPU time is what counts: the rounds of what is compared alternate, and each is the
best of several.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from koordpolicy.algorithms.gathering import GangNetwork, Gathering, GatherKey
from koordpolicy.algorithms.quota_sums import QuotaSums, QuotaTerms
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.quotas import Quotas
from koordpolicy.graph import RuleGraph
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.network_topology import NODE_LAYER, GatherRule, NetworkLayer, NetworkTopology
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import GANG_MINIMUM, GANG_NAME, GANG_TOPOLOGY_SPEC, QUOTA_NAME
from koordpolicy.model.quota import Quota
from koordpolicy.runtime.collector import keep_what_is_there
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.framework import Framework
from koordpolicy.scheduler.plugins.topology.plan import GangPlan, Planner
from tests.benchmarks import jobs_drain
from tests.benchmarks.measure import Row
from tests.benchmarks.scheduling import NOW
from tests.vectors.policies import document, graph

NODES = 5_000
GANGS, MEMBERS, PARTS = 1_000, 8, 10
SIZES = (8, 32, 100)
QUOTAS = 10_000
CROWDS = (1_000, 100_000)
_IN_ONE_SPINE = '{"gatherStrategy":[{"layer":"SpineLayer","strategy":"MustGather"}]}'
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


def run(divide: int = 1) -> Iterator[Row]:
    """Gangs placed beside as many plain pods, pods of quotas the same, then plans of gangs of several sizes beside plain decisions; at
    last gangs end to end, so many times fewer as `divide` says.
    """
    yield from _gangs()
    yield from _quotas()
    yield from _crowds()
    yield from _siblings()
    yield from _networks()
    yield from jobs_drain.run(divide)


def _gangs() -> Iterator[Row]:
    """Each way in a scheduler of its own; the parts of the work take turns, so that all have the same neighbours."""
    ways: dict[str, tuple[Mapping[str, object], str]] = {
        "plain pods": ({}, ""),
        "gangs, pod by pod": ({}, "gang"),
        "gangs, at once": ({"placement": "AtOnce"}, "gang"),
        "gangs, planned in one spine": ({"placement": "AtOnce", "awareNetworkTopology": True}, _IN_ONE_SPINE),
    }
    made = {way: scheduler(_graph(said)) for way, (said, _) in ways.items()}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for part in range(PARTS):
        for way, (_, kind) in ways.items():
            one = made[way]
            for gang in range(GANGS // PARTS):
                for pod in _members(f"{part}-{gang}", kind):
                    one.set_pod(pod)
            spent[way].append(_cpu(lambda one=one: _all_placed(one, GANGS // PARTS * MEMBERS)))  # type: ignore[misc]
    plain = min(spent["plain pods"])
    for way, times in spent.items():
        yield {
            "what": f"{GANGS} x {MEMBERS} as {way}",
            "µs/pod": min(times) / (GANGS // PARTS * MEMBERS) * 1e6,
            "pods/s": round(GANGS // PARTS * MEMBERS / min(times)),
            "gangs/s": round(GANGS // PARTS / min(times)),
            "of plain": min(times) / plain,
        }


def _quotas() -> Iterator[Row]:
    """From the news of a pod to its decision, the pod being of one of many quotas in three levels, beside plain pods."""
    ways = {
        "plain pods": (scheduler(graph()), ()),
        f"pods of {QUOTAS} quotas": (scheduler(graph()), _tree(levels=3)),
        f"pods of {QUOTAS} quotas, none above another": (scheduler(graph()), _tree(levels=1)),
    }
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for made, quotas in ways.values():
        for one in quotas:
            _set(made, one)
        keep_what_is_there()
    count = GANGS // PARTS * MEMBERS
    for part in range(PARTS):
        for way, (made, quotas) in ways.items():
            teams = [one.name for one in quotas if not one.is_parent] or [
                f"team-{at}" for at in range(QUOTAS)
            ]
            key = (
                QUOTA_NAME if quotas else "team"
            )  # labels make pods differ, and those of plain pods do as much
            pods = [
                replace(one, labels={key: teams[(part * count + at) * 37 % len(teams)]})
                for at, one in enumerate(_pods(f"p{part}", count, differ=False))
            ]
            spent[way].append(_cpu(lambda made=made, pods=pods: _placed(made, pods)))  # type: ignore[misc]
    plain = min(spent["plain pods"])
    for way, times in spent.items():
        best = min(times)
        yield {
            "what": f"{count * PARTS} {way}",
            "µs/pod": best / count * 1e6,
            "pods/s": round(count / best),
            "of plain": best / plain,
        }


def _set(made: Scheduler, quota: Quota) -> None:
    made.set_state(lambda state: state.quotas.set(quota), Event.QUOTA_CHANGED)


def _placed(made: Scheduler, pods: Sequence[Pod]) -> None:
    for pod in pods:
        made.set_pod(pod)
    _all_placed(made, len(pods))


def _tree(levels: int) -> tuple[Quota, ...]:
    """Quotas each of which may have a tenth of the cluster: all below the root, or a hundred of them above all others."""
    most = {"cpu": NODES * 9_600, "memory": NODES * 51 << 30}
    least = {"cpu": 4_000, "memory": 8 << 30}
    if levels == 1:
        return tuple(Quota(f"team-{at}", max=most, min=least) for at in range(QUOTAS))
    orgs, units = 10, 90
    each = -(-(QUOTAS - orgs - units) // units)

    def sure(teams: int) -> dict[str, int]:
        return {name: teams * number for name, number in least.items()}

    above = [
        Quota(f"org-{at}", max=most, min=sure(each * units // orgs), is_parent=True) for at in range(orgs)
    ]
    above += [
        Quota(f"unit-{at}", parent=f"org-{at % orgs}", max=most, min=sure(each), is_parent=True)
        for at in range(units)
    ]
    below = [
        Quota(f"team-{at}", parent=f"unit-{at % units}", max=most, min=least)
        for at in range(QUOTAS - orgs - units)
    ]
    return (*above, *below)


def _siblings() -> Iterator[Row]:
    """What an event costs where quotas ask for more than there is: the new runtime of the one whose request has changed."""
    for count in (10, 100, 1_000, QUOTAS):
        chance = random.Random(1)
        sums = QuotaSums({"cpu": count * 1_000, "memory": count << 30})
        for at in range(count):
            most = {"cpu": chance.randrange(2_000, 50_000), "memory": chance.randrange(2, 50) << 30}
            sums.put(QuotaTerms(f"q{at}", min={"cpu": 500, "memory": 1 << 29}, max=most, weight=most))
            asked = {"cpu": chance.randrange(9_000), "memory": chance.randrange(9 << 30)}
            sums.add_request(f"q{at}", asked)
        sums.runtime("q0")

        def events(sums: QuotaSums = sums, count: int = count) -> None:
            for at in range(10):
                name = f"q{at % count}"
                sums.add_request(name, {"cpu": 100, "memory": 1 << 27})
                sums.runtime(name)

        yield {
            "what": f"an event among {count} contending siblings",
            "event µs": min(_cpu(events) for _ in range(ROUNDS)) / 10 * 1e6,
        }


def _crowds() -> Iterator[Row]:
    """What an event of a pod costs among many quotas with few and many pods: it comes, is on a node, and is gone."""
    for count in CROWDS:
        made = Scheduler(graph(), lambda: NOW)
        tree = _tree(levels=3)
        for one in tree:
            _set(made, one)
        quotas, framework = made.cache.state.quotas, made.framework
        teams = [one.name for one in tree if not one.is_parent]

        def views(
            series: str, number: int, teams: Sequence[str] = teams, framework: Framework = framework
        ) -> list[PodView]:
            pods = enumerate(_pods(series, number, differ=False))
            return [
                framework.view(replace(pod, labels={QUOTA_NAME: teams[at * 37 % len(teams)]}))
                for at, pod in pods
            ]

        for view in views("there", count):
            quotas.came(view)
        keep_what_is_there()
        some = views("new", 1_000)

        def events(quotas: Quotas = quotas, some: Sequence[PodView] = some) -> None:
            for view in some:
                quotas.heard(view)
                quotas.came(view)
                quotas.certainly_within(view)
                quotas.gone(view.pod.key)
                quotas.eased()

        yield {
            "what": f"a pod comes and goes among {QUOTAS} quotas with {count} pods",
            "event µs": min(_cpu(events) for _ in range(ROUNDS)) / len(some) / 3 * 1e6,
        }


def _all_placed(made: Scheduler, count: int) -> None:
    placed = 0
    while (decision := made.schedule_one()) is not None:
        placed += decision.placed
    assert placed == count, f"only {placed} of {count} pods were placed"


def _graph(parameters: Mapping[str, object]) -> RuleGraph:
    own = {"parameters": dict(parameters)}
    return graph(document("GangScheduling", "own", own)) if parameters else graph()


def _members(name: str, kind: str) -> Iterator[Pod]:
    """The pods of a gang, which annotations put together; plain ones without a kind."""
    said = {GANG_NAME: name, GANG_MINIMUM: str(MEMBERS)} if kind else {}
    if kind == _IN_ONE_SPINE:
        said[GANG_TOPOLOGY_SPEC] = kind
    for pod in _pods(name, MEMBERS, differ=False):
        yield replace(pod, annotations=said)


def _networks() -> Iterator[Row]:
    made = scheduler(graph())
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


def scheduler(policies: RuleGraph) -> Scheduler:
    """A scheduler of the built-in profile that knows the nodes of a network, half full, each with a report."""
    chance = random.Random(1)
    made = Scheduler(policies, lambda: NOW, draw=chance.randrange, explained=0, refusals=False)
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
