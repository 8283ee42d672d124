"""What the table of actors says of components is so: each is let work, and asks the decisions of its fields, no others."""

import asyncio
import re
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from koordpolicy.agent.strategies.suppression import CPUSuppression
from koordpolicy.algorithms.node_record import node_record
from koordpolicy.algorithms.work import finished
from koordpolicy.cluster.events import Event
from koordpolicy.descheduler.migration.job import MigrationJob
from koordpolicy.descheduler.round import Memories, run_round
from koordpolicy.descheduler.rules import ProfileRules
from koordpolicy.descheduler.snapshot import snapshot_of
from koordpolicy.graph import RuleGraph
from koordpolicy.kube import resources
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.port import MergePatch
from koordpolicy.language.facts import TIMES
from koordpolicy.language.kinds import KINDS, slots
from koordpolicy.language.kinds.actors import ACTORS, Part
from koordpolicy.manager.controllers.agent_sum import summary_pace
from koordpolicy.manager.controllers.node_metric import NodeMetricController
from koordpolicy.manager.controllers.node_slo import NodeSLOController
from koordpolicy.manager.controllers.profile_reconciliation import PatchClock, ProfileReconciler
from koordpolicy.manager.controllers.quota_profile import KnownQuotaObjects, QuotaProfileController
from koordpolicy.manager.controllers.recommendation import RecommendationController
from koordpolicy.manager.recommender.owners import Owners
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.model.gang import read_pod_group
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.runtime.rollout.judging import judge
from koordpolicy.runtime.rollout.plan import plan_of
from koordpolicy.scheduler.network_status import NetworkStatus
from koordpolicy.scheduler.pod_group_status import PodGroupStatus
from koordpolicy.scheduler.quota_upkeep import QuotaUpkeep
from koordpolicy.scheduler.rehearsal import rehearse
from koordpolicy.scheduler.role import Role
from koordpolicy.scheduler.scheduler import Scheduler
from koordpolicy.simulator.simulation import Simulation, SimulationSettings
from koordpolicy.simulator.workload import Arrival, Wave
from koordpolicy.yarn.nodes import NodeManager, YARNAmounts
from koordpolicy.yarn_operator.plans import YARNNodes, pace_of
from tests.integration.simulations import MINUTE, node, pod, workload
from tests.unit.descheduler.clusters import NOW, full_and_empty, relocations_of
from tests.unit.descheduler.migrations import World
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import document, graph

_ALL: dict[str, dict[str, Any]] = {
    "ColocationProfile": {
        "labels": {"a": "b"}, "annotations": {"a": "b"}, "copyLabels": {"a": "c"}, "copyAnnotations": {"a": "c"},
        "labelSuffixes": {"a": "-x"}, "patch": {}, "reservations": True,
    },
    "AdmissionRule": {"require": False, "enforcement": "warn"},
    "QuotaTree": {
        "admission": {"enabled": True}, "nodeAffinity": True,
        "quotas": [{"name": "given", "max": {"cpu": "1"}, "namespaces": ["of-given"]}],
        "revocation": {"enabled": True},
    },
    "Overcommit": {"resource": "batch", "zone": {"cpu": 1, "memory": "1Gi"}},
    "CPUSuppress": {"minimum": 1},
    "SchedulingProfile": {
        "schedulerName": "koord-scheduler",
        "queue": {"confirmWithin": "1s"},
        "filters": [{"name": "own", "require": {"cel": "node.name != pod.name"}, "reason": "own"}],
        "scores": [{"name": "own", "value": {"cel": "double(node.capacity.pods)"}, "normalize": "MinMax"}],
    },
    "Descheduling": {
        "conditions": [{"name": "own", "require": {"cel": "pod.name != 'stays'"}, "reason": "own"}],
        "limits": {"total": 100, "perNode": 100, "perNamespace": 100},
        "strategies": [
            {"name": "by-load", "plugin": "LowNodeLoad", "candidates": {"cel": "pod.name == 'first'"},
             "load": {"high": {"cpu": "50%"}, "low": {"cpu": "40%"}, "anomaly": {"rounds": 1}}},
            {"name": "by-expressions", "candidates": True, "release": {"cel": "node.requested.cpu > cpu('1')"},
             "relocating": {"better": False}},
        ],
    },
    "Rollout": {
        "steps": [{"name": "one", "hold": "1m", "shadow": {}, "canary": {"share": "10%"}}],
        "guards": [{"name": "own", "require": False, "reason": "none", "knownWithin": "1m"}],
    },
    "ContainerHook": {"cpuSpeed": 1.0},
    "Amplification": {"parameters": {"amplify": True, "ratios": {"value": {"cpu": 1.5}}}, "admission": {"enabled": True}},
    "NodeReservation": {"enabled": True, "cpu": 1, "memory": "1Gi", "cpus": "0"},
    "YARNNode": {"nodeManager": "nm:1"},
    "MemoryEviction": {
        "enabled": True, "threshold": "10%", "lower": "5%", "bestEffort": {"enabled": True},
        "byPriority": {"enabled": True, "highestPriority": 5999},
        "byRequests": {"enabled": True, "threshold": "1%", "lower": "0%", "highestPriority": 5999},
    },
    "CPUEviction": {
        "enabled": True, "window": "30s", "bestEffort": {"threshold": "30%", "upper": "40%", "usage": "90%"},
        "byPriority": {"enabled": True, "threshold": "2%", "lower": "1%", "highestPriority": 5999},
        "byRequests": {"enabled": True, "threshold": "1%", "lower": "0%", "highestPriority": 5999},
    },
    "CPUBurst": {"policy": "auto"},
    "Isolation": {
        "group": "BE",
        "cpu": {"enabled": True, "identity": -1, "idle": True, "expels": False},
        "memory": {
            "enabled": True, "minimum": "0%", "low": "0%", "throttling": "0%", "watermark": "95%", "watermarkScale": 20,
            "watermarkAdjustment": 50, "hasPriority": False, "priority": 0, "killsGroup": False,
            "pageCache": {"enabled": True, "limit": "10%", "size": "1Gi", "reclaimsAtOnce": False},
        },
        "cache": {"enabled": True, "start": "0%", "end": "30%", "bandwidth": "100%"},
        "network": {
            "enabled": True, "ingress": {"request": "0%", "limit": "40%"}, "egress": {"request": "0%", "limit": "40%"},
        },
        "disk": {"enabled": True},
    },
    "SystemTuning": {
        "cpuMechanism": "coreSched", "networkMechanism": "tc", "minFreeFactor": 100, "watermarkScaleFactor": 150,
        "reapsMemory": True, "groupIdentity": True, "idleSaverWatermark": "1ms", "features": {"A": True},
        "limitsPageCache": True,
    },
}  # fmt: skip
"""A document of each kind, with what is only asked where it is said."""


@pytest.fixture(scope="module")
def asked() -> frozenset[str]:
    """The decisions that components ask for while they work, as the fields of kinds."""
    names: set[str] = set()
    ordinary = RuleGraph.decision

    def noted(self: RuleGraph, name: str) -> Any:
        names.add(name)
        return ordinary(self, name)

    RuleGraph.decision = noted  # type: ignore[method-assign]
    try:
        _work(graph(*(document(kind, "own", spec) for kind, spec in _ALL.items())))
    finally:
        RuleGraph.decision = ordinary  # type: ignore[method-assign]
    return frozenset(map(_field, names)) - _ASKED_ALONG


def _work(policies: RuleGraph) -> None:
    rehearse(policies, "koord-scheduler", Role())
    for webhook in WEBHOOKS:
        webhook.scope(policies)
    small = SmallCluster(policies)
    small.node()
    small.report()
    small.store.create(resources.NODE_RESOURCE_TOPOLOGIES, _TOPOLOGY)
    small.create(
        resources.DEVICES,
        {"metadata": {"name": "n"}, "spec": {"devices": [{"type": "rdma", "health": True}]}},
    )
    small.reconcile()
    small.create(
        resources.PODS,
        {
            "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}, _GPU]},
        },
    )
    tree = {"quota.scheduling.koordinator.sh/tree-id": "t"}
    small.create(
        resources.ELASTIC_QUOTAS, {"metadata": {"name": "q", "labels": tree}, "spec": {"max": {"cpu": "1"}}}
    )
    small.create(resources.RESERVATIONS, {"metadata": {"name": "r"}, "spec": {"template": {"spec": {}}}})
    small.create(
        resources.ELASTIC_QUOTA_PROFILES,
        {"metadata": {"name": "q", "labels": tree}, "spec": {"quotaName": "r", "nodeSelector": {}}},
    )
    small.create(
        resources.PODS,
        {
            "metadata": {"name": "counted", "labels": {"quota.scheduling.koordinator.sh/name": "q"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
        },
    )
    sight = small.objects.sight("n")
    assert sight is not None
    record = node_record(sight, policies.catalogue, TIMES, small.nanoseconds)
    NodeSLOController(
        lambda node, labels: policies, small.objects, lambda name: None, lambda: small.nanoseconds
    ).decide("n")
    _follow_quota_profile(policies)

    _keep_quotas(policies)
    _keep_pods(small)
    _keep_gangs(small)
    _recommend(small)
    NodeMetricController(
        lambda node, labels: policies, small.objects, lambda name: None, lambda: small.nanoseconds
    ).decide("n")
    summary_pace(policies)
    _share_with_yarn(small)
    suppression = CPUSuppression(policies)
    suppression.decide(record, small.nanoseconds)
    suppression.decide({}, small.nanoseconds)
    judge(policies, plan_of(policies, {}, 0), {}, 0)
    _run_agents(policies)
    _deschedule(policies)
    _migrate(policies)


def _share_with_yarn(small: SmallCluster) -> None:
    """A NodeManager that runs, and is gone."""
    small.look()
    sight = small.objects.sight("n")
    assert sight is not None
    pace_of(small.graph)
    nodes = YARNNodes(lambda node, labels: small.graph, lambda: small.nanoseconds, lambda: 0.0)
    manager = nodes.manager_of(sight)
    amounts = YARNAmounts(0, 0)
    for running in ({manager: NodeManager(manager, "RUNNING", amounts, amounts, 0)}, {}):
        assert nodes.decide(sight, manager, running) is not None


def _migrate(policies: RuleGraph) -> None:
    """A pod that is let go."""
    world = World(policies)
    assert isinstance(world.migrate("web-0"), MigrationJob)
    world.job("by-user", "web-1")
    world.look(2)
    for room in world.rooms():
        world.reserved(room)
    world.look(2)
    assert {"web-0", "web-1"} - world.names()


def _deschedule(policies: RuleGraph) -> None:
    """A node that is too full, with one pod that may go and one that may not."""
    objects = full_and_empty()
    snapshot = finished(snapshot_of(objects, policies.catalogue, NOW))
    report = finished(
        run_round(
            ProfileRules(policies, "own"),
            snapshot,
            policies.catalogue,
            Memories(),
            lambda going, pod: None,
            relocations_of(objects, policies),
        )
    )
    found = [one.strategy for one in report.moves]
    assert sorted(set(found)) == ["by-expressions", "by-load"]


def _run_agents(policies: RuleGraph) -> None:
    """A node in a simulation that is short of CPU and memory, with an agent."""
    arrivals = [Arrival(0, pod("web", "2"), None, Wave(1.0, 1.0))]
    for number in range(2):
        labels = {"koordinator.sh/qosClass": "BE", "koordinator.sh/eviction-enabled": "true"}
        job = pod(f"crawl-{number}", "3", "8Gi", **labels)
        amounts = {"kubernetes.io/batch-cpu": "3000", "kubernetes.io/batch-memory": "8Gi"}
        job["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        job["spec"] |= {"schedulerName": "koord-scheduler", "priorityClassName": "koord-batch"}
        arrivals.append(Arrival(2 * MINUTE, job, 60 * MINUTE, Wave(1.0, 1.0)))
    settings = SimulationSettings(2 * MINUTE, agents=True)
    made = Simulation(policies, workload(arrivals, [node("a")], 10), settings, np.random.default_rng(1))
    made.run()
    assert made.journal.evicted


def _keep_quotas(policies: RuleGraph) -> None:
    """A quota that policy gives, with a pod on a node that takes more than it may for too long."""
    now = 0
    scheduler = Scheduler(policies, lambda: now)
    scheduler.set_node(read_node({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "9"}}}))
    large = pod("large", "5")
    large["metadata"]["namespace"] = "of-given"
    large["spec"]["nodeName"] = "n"
    scheduler.set_pod(read_pod(large))
    cluster = MemoryCluster(Store(lambda: 0.0))
    upkeep = QuotaUpkeep(lambda: scheduler.cache.state.quotas, cluster, lambda: now)
    assert upkeep.due() == []
    now = 1000 * NANOSECONDS
    assert [quota for quota, _ in upkeep.due()] == ["given"]
    assert (upkeep.pause("reporting.every"), upkeep.pause("revocation.every")) == (1.0, 1.0)
    asyncio.run(upkeep.report_once())


def _follow_quota_profile(policies: RuleGraph) -> None:
    profile: Any = {
        "metadata": {"namespace": "team", "name": "pool"},
        "spec": {"quotaName": "root", "nodeSelector": {}},
    }
    node = read_node({"metadata": {"name": "n"}})
    controller = QuotaProfileController(
        lambda: policies,
        KnownQuotaObjects({("team", "pool"): profile}, {}, lambda: {"n": node}),
        lambda: 0,
    )
    asyncio.run(controller.decide(("team", "pool")))
    controller.every()
    controller.retry_after()


def _keep_pods(small: SmallCluster) -> None:
    """A pod that waits, and an object that selects it."""
    small.create(
        resources.CLUSTER_COLOCATION_PROFILES, {"metadata": {"name": "all"}, "spec": {"selector": {}}}
    )
    clock = PatchClock(lambda: small.nanoseconds, lambda: 0.0)
    controller = ProfileReconciler(lambda: small.graph, small.store, clock)
    controller.plan(("default", "p"))


def _keep_gangs(small: SmallCluster) -> None:
    """A PodGroup with a pod."""
    obj = small.create(resources.POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 1}})
    scheduler = Scheduler(small.graph, lambda: small.nanoseconds)
    scheduler.set_state(lambda state: state.pod_groups.set(read_pod_group(obj)), Event.POD_GROUP_CHANGED)
    labels = {"pod-group.scheduling.sigs.k8s.io": "g"}
    scheduler.set_pod(
        read_pod({"metadata": {"name": "p", "namespace": "default", "labels": labels}, "spec": {}})
    )
    status = PodGroupStatus(scheduler, MemoryCluster(small.store), lambda: small.nanoseconds)
    status.workers()
    status.retry_after()
    asyncio.run(status.reconcile("default/g"))

    async def once(_seconds: float) -> None:
        raise asyncio.CancelledError

    with suppress(asyncio.CancelledError):
        asyncio.run(NetworkStatus(scheduler, MemoryCluster(small.store), once).run())


def _recommend(small: SmallCluster) -> None:
    """A pod of two containers, whose node reports it."""
    labels = {"app": "two"}
    containers = [{"name": name, "image": "i"} for name in ("a", "b")]
    small.create(
        resources.PODS,
        {"metadata": {"name": "two", "labels": labels}, "spec": {"nodeName": "n", "containers": containers}},
    )
    phase = MergePatch({"status": {"phase": "Running"}})
    small.store.patch(resources.PODS, "two", phase, namespace="default", subresource="status")
    target = {"type": "podSelector", "podSelector": {"matchLabels": labels}}
    obj = small.create(resources.RECOMMENDATIONS, {"metadata": {"name": "two"}, "spec": {"target": target}})
    controller = RecommendationController(
        lambda: small.graph,
        small.objects,
        lambda key: obj,
        Owners(lambda name: None),
        lambda: small.nanoseconds,
        lambda graph, problem, key: None,
    )
    controller.heard(("default", "two"), obj)
    small.report(pods={"two": "1"})
    small.look()
    sight = small.objects.sight("n")
    assert sight is not None
    assert sight.metric is not None
    controller.reported(sight.metric)
    controller.due()
    controller.decide(("default", "two"))


_GPU: Any = {
    "name": "g",
    "image": "i",
    "resources": {"requests": {"koordinator.sh/gpu": "1"}, "limits": {"koordinator.sh/gpu": "1"}},
}
_TOPOLOGY: Any = {
    "metadata": {"name": "n"},
    "zones": [
        {
            "name": "node-0",
            "type": "Node",
            "resources": [
                {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
                for name, amount in (("cpu", "50"), ("memory", "50Gi"))
            ],
        }
    ],
}


_ASKED_ALONG = frozenset(
    f"MetricCollection.pods.{field}" for field in ("every", "timeout", "noticeWithin", "staleAfter")
) | {
    "CPUEviction.bestEffort.enabled",
    "Prediction.checkpoint.interval",
    "ContainerHook.container.environment",
}
"""What agents in simulations ask with the rest, and have no use for: nobody tells them of pods late, one sample is few,
nothing outlives them, and no runtime asks what containers are created with.
"""


def _field(name: str) -> str:
    """`SchedulingProfile/x.filters[own].require` as `SchedulingProfile.filters[*].require`."""
    kind, _, rest = name.partition("/") if "/" in name.partition(".")[0] else name.partition(".")
    known = sorted(_FIELDS.get(kind, ()), key=len, reverse=True)
    return next((f"{kind}.{field}" for field in known if re.search(_pattern(field), rest)), name)


def _pattern(field: str) -> str:
    escaped = re.escape(field).replace(r"\[\*\]", r"\[[^\]]*\]").replace(r"\.\*", r"\..*")
    return rf"(?:^|\.){escaped}\Z"


_FIELDS = {
    kind.name: [one.field for one in slots(kind.spec) if not one.field.startswith("parameters.")]
    for kind in KINDS.values()
}
_ACTING = frozenset(
    {Part.MANAGER, Part.SCHEDULER, Part.DESCHEDULER, Part.YARN_OPERATOR, Part.ROLLOUTS, Part.SIMULATOR}
)
_BY_COMPILER = frozenset({"QoSClass", "PriorityBand"})
"""Their decisions are evaluated once, and become the catalogue."""


def _actor(kind: str, field: str) -> Any:
    plain = field.removesuffix("[*]").replace("[*]", "[]").removesuffix(".*")
    return ACTORS[kind, plain]


CASES = [(kind, field) for kind, fields in _FIELDS.items() if kind not in _BY_COMPILER for field in fields]


@pytest.mark.parametrize(("kind", "field"), CASES, ids=".".join)
def test_a_component_asks_for_a_field_that_it_acts_on(kind: str, field: str, asked: frozenset[str]) -> None:
    assert (f"{kind}.{field}" in asked) == bool(_actor(kind, field).parts & _ACTING)
