"""What the scheduler says of small random clusters is what the oracle says, however they came about."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.model.volumes import (
    read_attach_limits,
    read_attachment,
    read_capacity_tracking,
    read_claim,
    read_storage_capacity,
    read_storage_class,
    read_volume,
)
from koordpolicy.scheduler import Decision, Scheduler
from koordpolicy.scheduler.surroundings import Surroundings
from tests.oracle import Cluster, refusals
from tests.oracle.chance import Chance
from tests.oracle.cluster import Obj, name, namespace
from tests.unit.scheduler.world import policies

GRAPH = policies()
FEW = settings(max_examples=40, deadline=None)
SEEDS = st.integers(0, 2**32)


def told(cluster: Cluster, order: Random, *, quick: bool = False) -> Scheduler:
    """A scheduler that heard of a cluster's objects in some order; a quick one explains nothing."""
    options: dict[str, Any] = {"explained": 0, "refusals": False} if quick else {"explained": 100}
    scheduler = Scheduler(GRAPH, lambda: 1_700_000_000 * NANOSECONDS, **options)
    news: list[Callable[[], None]] = [
        *(partial(scheduler.set_namespace, obj) for obj in cluster.namespaces),
        *(partial(scheduler.set_node, read_node(obj)) for obj in cluster.nodes),
        *(partial(scheduler.set_pod, read_pod(obj)) for obj in cluster.pods),
        *(partial(scheduler.set_around, partial(tell, obj)) for obj in storage(cluster)),
    ]
    order.shuffle(news)
    for one in news:
        one()
    return scheduler


def storage(cluster: Cluster) -> list[tuple[str, Obj]]:
    """The objects of storage with their kinds."""
    return [
        (kind, obj)
        for kind, objects in (
            ("volume", cluster.volumes),
            ("claim", cluster.claims),
            ("class", cluster.classes),
            ("csi node", cluster.csi_nodes),
            ("csi driver", cluster.csi_drivers),
            ("capacity", cluster.capacities),
            ("attachment", cluster.attachments),
        )
        for obj in objects
    ]


def tell(news: tuple[str, Obj], around: Surroundings) -> None:
    kind, obj = news
    volumes = around.volumes
    match kind:
        case "volume":
            volumes.set_volume(read_volume(obj))
        case "claim":
            volumes.set_claim(read_claim(obj))
        case "class":
            volumes.set_class(read_storage_class(obj))
        case "csi node":
            volumes.set_limits(*read_attach_limits(obj))
        case "csi driver":
            volumes.set_tracking(*read_capacity_tracking(obj))
        case "capacity":
            volumes.set_capacity(read_storage_capacity(obj))
        case "attachment":
            volumes.set_attachment(read_attachment(obj))


def agrees(cluster: Cluster, pod: Obj, decision: Decision) -> None:
    """The decision names the oracle's nodes, and counts its refusals."""
    expected = refusals(cluster, pod)
    assert not decision.problem, decision
    assert {one.node for one in decision.best} == {node for node, one in expected.items() if one is None}
    refused = [one for one in expected.values() if one is not None]
    said: dict[str, set[str]] = {}
    nodes: Counter[str] = Counter()
    hopeless: Counter[str] = Counter()
    for told_of in decision.refusals:
        said.setdefault(told_of.filter, set()).add(told_of.reason)
        nodes[told_of.filter] += told_of.nodes
        hopeless[told_of.filter] += 0 if told_of.resolvable else told_of.nodes
    assert said.keys() == {one.filter for one in refused}
    for name_of, reasons in said.items():
        mine = [one for one in refused if one.filter == name_of]
        assert all(one.reasons & reasons for one in mine)
        # Where filters give several reasons for one node, it counts for each.
        if name_of not in ("NodeResourcesFit", "VolumeBinding"):
            assert nodes[name_of] == len(mine)
            assert hopeless[name_of] == sum(one.hopeless for one in mine)


@FEW
@given(SEEDS)
def test_a_cluster_as_it_stands(seed: int) -> None:
    chance = Chance(seed)
    cluster = chance.cluster()
    scheduler = told(cluster, Random(seed))
    for _ in range(6):
        pod = chance.pod(cluster)
        agrees(cluster, pod, scheduler.decide(read_pod(pod)))


@FEW
@given(SEEDS)
def test_a_cluster_that_changes_all_the_time(seed: int) -> None:
    chance, order = Chance(seed), Random(seed)
    cluster = chance.cluster()
    # In the same order, since that is what breaks ties.
    both = (told(cluster, Random(seed)), told(cluster, Random(seed), quick=True))
    asked = [chance.pod(cluster) for _ in range(3)]
    for step in range(12):
        change(cluster, both, chance, order, step)
        for pod in asked:
            decision, quick = (scheduler.decide(read_pod(pod)) for scheduler in both)
            agrees(cluster, pod, decision)
            assert (quick.node, quick.feasible) == (decision.node, decision.feasible)


def change(
    cluster: Cluster, schedulers: Sequence[Scheduler], chance: Chance, order: Random, step: int
) -> None:
    """Something happens in the cluster, and the schedulers hear of it."""
    for news in happens(cluster, chance, order, step):
        for scheduler in schedulers:
            news(scheduler)


News = Callable[[Scheduler], object]


def happens(cluster: Cluster, chance: Chance, order: Random, step: int) -> Iterator[News]:
    what = order.choice(
        ("pod", "pod", "pod gone", "node", "new node", "node gone", "labels", "storage", "space")
    )
    if what == "pod":
        pod = chance.placed(cluster)
        cluster.pods.append(pod)
        yield lambda scheduler: scheduler.set_pod(read_pod(pod))
    elif what == "pod gone" and cluster.pods:
        gone = cluster.pods.pop(order.randrange(len(cluster.pods)))
        yield lambda scheduler: scheduler.remove_pod((namespace(gone), name(gone)))
    elif what == "node":
        at = order.randrange(len(cluster.nodes))
        cluster.nodes[at] = chance.node(name(cluster.nodes[at]))
        yield lambda scheduler: scheduler.set_node(read_node(cluster.nodes[at]))
    elif what == "new node":
        cluster.nodes.append(chance.node(f"new{step}"))
        yield lambda scheduler: scheduler.set_node(read_node(cluster.nodes[-1]))
    elif what == "node gone" and len(cluster.nodes) > 1:
        gone = cluster.nodes.pop(order.randrange(len(cluster.nodes)))
        yield lambda scheduler: scheduler.remove_node(name(gone))
    elif what == "labels" and cluster.pods:
        at = order.randrange(len(cluster.pods))
        pod = cluster.pods[at]
        changed = {**pod, "metadata": {**pod["metadata"], "labels": {"app": chance.sample(("a", "b"))}}}
        cluster.pods[at] = changed
        yield lambda scheduler: scheduler.set_pod(read_pod(changed))
    elif what == "storage":
        other = chance.cluster(nodes=1, pods=0)
        at = order.randrange(len(cluster.claims))
        cluster.claims[at] = {**other.claims[at], "spec": {**other.claims[at]["spec"]}}
        cluster.claims[at]["spec"].pop("volumeName", None)
        cluster.claims[at]["metadata"]["annotations"] = {}
        cluster.volumes[at % 4] = other.volumes[at % 4]
        # Which of two volumes for one claim it gets is left open.
        cluster.volumes[at % 4]["spec"].pop("claimRef", None)
        for kind, obj in (("claim", cluster.claims[at]), ("volume", cluster.volumes[at % 4])):
            yield partial(_hears, (kind, obj))
    elif what == "space":
        at = order.randrange(len(cluster.namespaces))
        cluster.namespaces[at] = {
            "metadata": {**cluster.namespaces[at]["metadata"], "labels": {"team": chance.sample(("t", "u"))}}
        }
        yield lambda scheduler: scheduler.set_namespace(cluster.namespaces[at])


def _hears(news: tuple[str, Obj], scheduler: Scheduler) -> None:
    scheduler.set_around(partial(tell, news))
