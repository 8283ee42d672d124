"""Runners of preemption: the scheduler itself finds victims, policy orders the nodes."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.algorithms.eviction import candidates_to_find
from koordpolicy.cluster.pods import PodView, view_of
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.model.disruption import read_budget
from koordpolicy.model.node import Node
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler import Scheduler
from koordpolicy.scheduler.plugins.preemption.policy import PreemptionPolicy, candidate_facts
from koordpolicy.scheduler.pod_predicate import PodPredicate
from koordpolicy.scheduler.profile import records_for
from tests.vectors.policies import graph
from tests.vectors.runners.runner import Runner
from tests.vectors.runners.scheduler_core import PROFILE, overlay

Given = Mapping[str, Any]

_NOW = 1_700_000_000 * NANOSECONDS
_GANG = "pod-group.scheduling.sigs.k8s.io"


def _pod(given: Given, node: str = "", **more: Any) -> Pod:
    return Pod(
        given.get("name", "pod"),
        labels=given.get("labels", {}),
        scheduler_name=PROFILE,
        priority=given["priority"],
        node_name=node,
        phase="Running" if node else "",
        containers=(Container("main", requests={"cpu": given.get("cpu", 0)}),),
        started_at=given["start_time"] * NANOSECONDS if "start_time" in given else None,
        **more,
    )


def _budget(given: Given) -> Given:
    return {
        "metadata": {"name": given["name"]},
        "spec": {"selector": {"matchLabels": given.get("matchLabels", {})}},
        "status": {"disruptionsAllowed": given["disruptions_allowed"]},
    }


def preemption_victims(given: Given) -> Given:
    node = given["node"]
    scheduler = Scheduler(graph(), lambda: _NOW)
    scheduler.set_node(Node("node", allocatable={"pods": 110, **node["allocatable"]}))
    for one in node["pods"]:
        scheduler.set_pod(_pod(one, "node"))
    for one in given.get("pdbs", ()):
        scheduler.cache.state.budgets.set(read_budget(_budget(one)))
    scheduler.set_pod(_pod(given["pod"]))
    decision = scheduler.schedule_one()
    assert decision is not None
    assert not decision.placed
    if decision.preemption is None:
        return {"candidate": False}
    return {
        "candidate": True,
        "victims": [victim.pod[1] for victim in decision.preemption.victims],
        "pdb_violations": decision.preemption.violations,
    }


def preemption_pick(given: Given) -> Given:
    compiled = graph()
    policy = PreemptionPolicy(compiled, PROFILE)
    views = {
        one["node"]: [_view(_pod({"name": str(at), **victim})) for at, victim in enumerate(one["victims"])]
        for one in given["candidates"]
    }
    facts = [
        candidate_facts(one["node"], views[one["node"]], one["pdb_violations"], Timestamp(_NOW))
        for one in given["candidates"]
    ]
    records = records_for(_view(_pod({"priority": 1000})).facts, {}, {}, _NOW)
    return {"node": min(facts, key=lambda one: policy.order(records, one))["node"]}


def preemption_candidates(given: Given) -> Given:
    share, least, _ = PreemptionPolicy(graph(), PROFILE).search({})
    return {"candidates": candidates_to_find(given["nodes"], share, least)}


def nominated_pods(given: Given) -> Given:
    compiled = overlay(
        {
            "ownSchedulers": given["local_profiles"],
            "crossSchedulerNomination": given["cross_scheduler_nomination"],
        }
    )
    respects = PodPredicate(compiled, f"SchedulingProfile/{PROFILE}.preemption.respects", "nominated")
    gang = {_GANG: "job"}
    me = _view(_pod({**given["pod"], "labels": gang}))
    added = []
    for one in given["nominated"]:
        pod = Pod(
            one["name"],
            labels=gang if one.get("same_job") else {},
            scheduler_name=one["scheduler"],
            priority=one["priority"],
        )
        if respects.bound(records_for(me.facts, {}, {}, _NOW))(_view(pod)):
            added.append(one["name"])
    # The reference lists those of its own schedulers first; a node is the same in any order.
    own = {one["name"] for one in given["nominated"] if one["scheduler"] in given["local_profiles"]}
    return {"added": sorted(added, key=lambda name: name not in own)}


def _view(pod: Pod) -> PodView:
    return view_of(pod, graph().catalogue, lambda _facts: None)


RUNNERS: Mapping[str, Runner] = {
    "preemption_victims": Runner(preemption_victims),
    "preemption_pick": Runner(preemption_pick),
    "preemption_candidates": Runner(preemption_candidates),
    "nominated_pods": Runner(nominated_pods),
}
