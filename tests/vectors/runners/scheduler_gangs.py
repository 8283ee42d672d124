"""Runners of gangs: policy reads what is said of them, the scheduler's own book goes through sequences of steps."""

import json
from collections.abc import Mapping
from typing import Any

from koordpolicy.algorithms.gang import Held
from koordpolicy.algorithms.gang_book import GangBook
from koordpolicy.algorithms.gang_records import GangPods, pod_group_facts
from koordpolicy.algorithms.gang_victims import JobPart, node_costs
from koordpolicy.cluster.pods import PodView, view_of
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.facts import TIMES
from koordpolicy.model.gang import declared_by_pod, read_pod_group
from koordpolicy.model.pod import Pod, PodKey, read_pod
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.plugins.gang.policy import KIND as GANGS
from koordpolicy.scheduler.plugins.gang.policy import GangDecisions, GangPolicy, TooMany
from koordpolicy.scheduler.plugins.gang.victims import GangVictims
from koordpolicy.scheduler.profile import profile_of, records_for
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner
from tests.vectors.runners.scheduler_core import PROFILE

Given = Mapping[str, Any]

_NOW = 1_700_000_000 * NANOSECONDS
_JOB = "scheduling.koordinator.sh/questioned-object-key"


def _view(pod: Pod) -> PodView:
    return view_of(pod, graph().catalogue, lambda _facts: None)


def _with(**parameters: Any) -> RuleGraph:
    return graph(document(GANGS, "vector", {"parameters": parameters}))


def gang_parameters(given: Given) -> Given:
    policy = GangPolicy(
        _with(
            defaultTimeout=f"{given['default_timeout_seconds']}s",
            defaultMatchPolicy=given["default_match_policy"],
        )
    )
    metadata = {"name": given["name"], "namespace": given["namespace"], "annotations": given["annotations"]}
    if given["source"] == "podgroup":
        said = read_pod_group({"metadata": metadata, "spec": given["spec"]}).declaration
    else:
        pod = read_pod({"metadata": {**metadata, "name": "pod", "labels": given["labels"]}, "spec": {}})
        name = policy.gang_of(_view(pod), {}, _NOW)
        assert (name, policy.declared_by(_view(pod), {}, _NOW)) == (given["name"], "Pod")
        said = declared_by_pod(pod, name)
    found = policy.parameters(said, {}, _NOW)
    assert not isinstance(found, TooMany)
    if found is None:
        return {"initialised": False}
    return {
        "initialised": True,
        "min": found.minimum,
        "total": found.total,
        "mode": found.mode,
        "match_policy": found.match_policy,
        "wait_seconds": found.wait // NANOSECONDS,
        "group": list(found.group),
    }


class _Sequence:
    """A book, and the steps of a vector on it."""

    def __init__(self, gangs: list[Given]) -> None:
        policy = GangPolicy(_with(oneInQueue=True, acrossNamespaces="Named"))
        self.book = GangBook(GangDecisions(policy, lambda: _NOW, lambda _name: {}, lambda _gang: 0))
        for one in gangs:
            namespace, name = one["id"].split("/")
            annotations = {
                "gang.scheduling.koordinator.sh/mode": one.get("mode", "Strict"),
                "gang.scheduling.koordinator.sh/match-policy": one.get("policy", "once-satisfied"),
                "gang.scheduling.koordinator.sh/groups": json.dumps([*one.get("groups", ())]),
            }
            said = read_pod_group(
                {
                    "metadata": {"namespace": namespace, "name": name, "annotations": annotations},
                    "spec": {
                        "minMember": one["min"],
                        "scheduleTimeoutSeconds": one.get("wait_seconds", 600),
                    },
                }
            )
            seen = one.get("initialised", True)
            found = policy.parameters(said.declaration, {}, _NOW) if seen else None
            assert not isinstance(found, TooMany)
            self.book.set_gang(one["id"], found)

    def step(self, given: Given) -> Given | None:
        book, event = self.book, given["event"]
        if event == "next_pod":
            return self._next(given)
        pod = ("", given["pod"])
        match event:
            case "pod_add":
                book.set_pod(pod, given["gang"], bound=given.get("bound", False))
            case "pre_enqueue":
                return _allowed(book.may_enter(pod))
            case "begin":
                why = book.begin(pod)
                if why is not None:
                    book.failed(pod, "refused")
                return _allowed(why)
            case "fail":
                return {"rejected": _names(book.failed(pod, "fits nowhere"))}
            case "permit":
                found = book.permit(pod)
                if isinstance(found, Held):
                    return {"result": "wait", "wait_seconds": found.wait // NANOSECONDS}
                return {"result": "success", "allowed": _names(found.pods)}
            case "bind":
                book.bound(pod)
            case "unreserve":
                return {"rejected": _names(book.unreserved(pod))}
            case "delete":
                book.remove_pod(pod)
            case _:
                raise AssertionError(event)
        return None

    def _next(self, given: Given) -> Given:
        turn = self.book.next()
        taken = given.get("take", turn.candidates[0][1] if len(turn.candidates) == 1 else None)
        if taken is not None:
            self.book.take(("", taken))
        if turn.candidates:
            return {"candidates": _names(turn.candidates)}
        return {"candidates": [], "rejected": _names(turn.rejected)}


def _allowed(why: str | None) -> Given:
    return {"result": "allow"} if why is None else {"result": "reject", "why": str(why)}


def _names(pods: tuple[PodKey, ...]) -> list[str]:
    return sorted(name for _, name in pods)


def gang_sequence(given: Given) -> Given:
    sequence = _Sequence(given["gangs"])
    return {"results": [sequence.step(one) for one in given["events"]]}


def podgroup_phase(given: Given) -> Given:
    found = read_pod_group({"metadata": {"name": "g"}, "spec": {"minMember": given["min_member"]}})
    phases = [*given["pod_phases"]]
    pods = GangPods(
        len(phases), given["bound"], *(phases.count(one) for one in ("Running", "Succeeded", "Failed"))
    )
    facts = pod_group_facts(found, given["phase"], pods, TIMES, _NOW)
    records = {"podGroup": facts, "namespaceObject": {}, "now": Timestamp(_NOW)}
    return {"phase": graph().ask(f"{GANGS}.phases.phase", **records).value}


def queue_order(given: Given) -> Given:
    profile = profile_of(graph(), PROFILE)

    def place(one: Given) -> Any:
        namespace, _, gang = one["gang"].rpartition("/")
        labels = {"pod-group.scheduling.sigs.k8s.io": gang} if gang else {}
        view = _view(Pod(one["name"], namespace=namespace, labels=labels, priority=one["priority"]))
        facts = {**view.facts, "queuedAt": Timestamp(one["queued_at"] * NANOSECONDS)}
        return profile.sort_key(records_for(facts, {}, {}, _NOW))

    return {"order": [one["name"] for one in sorted(given["pods"], key=place)]}


def preemption_node_cost(given: Given) -> Given:
    policy = GangVictims(graph())
    parts = {
        node: [JobPart(one["priority"], policy.job_of(_victim(one), _NOW)) for one in pods]
        for node, pods in given["nodes"].items()
    }
    return {"cost": node_costs(parts)}


def job_victim_order(given: Given) -> Given:
    policy = GangVictims(graph())
    kept = sorted(given["victims"], key=lambda one: policy.importance(_victim(one), _NOW))
    return {"order": [one["name"] for one in kept]}


def _victim(given: Given) -> PodView:
    labels = {_JOB: given["job"]} if given.get("job") else {}
    return _view(Pod(given.get("name", "pod"), labels=labels, priority=given["priority"]))


RUNNERS: Mapping[str, Runner] = {
    "gang_parameters": Runner(gang_parameters),
    "gang_sequence": Runner(gang_sequence),
    "podgroup_phase": Runner(podgroup_phase),
    "queue_order": Runner(queue_order),
    "preemption_node_cost": Runner(preemption_node_cost),
    "job_victim_order": Runner(job_victim_order),
}
