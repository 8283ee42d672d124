"""Fact records of gangs: what is said of one, how it stands, and what the pods of a PodGroup do."""

from dataclasses import dataclass
from typing import Final

from koordpolicy.algorithms.gang import Gang, GangGroup
from koordpolicy.model.facts import Record, Times
from koordpolicy.model.gang import GangDeclaration, PodGroup
from koordpolicy.model.network_topology import read_gather_rules
from koordpolicy.model.protocol import GANG_TOPOLOGY_SPEC
from koordpolicy.model.reading import ObjectError

_NONE: Final = 0


def declaration_facts(said: GangDeclaration, times: Times) -> Record:
    """What an object says of a gang."""
    record: Record = {
        "kind": said.kind,
        "name": said.name,
        "namespace": said.namespace,
        "labels": said.labels,
        "annotations": said.annotations,
        "mode": said.mode,
        "matchPolicy": said.match_policy,
        "groups": list(said.groups),
        "topologyKeys": list(said.topology_keys),
        **_gather_facts(said),
    }
    if said.minimum is not None:
        record["minimum"] = said.minimum
    if said.total is not None:
        record["total"] = said.total
    if said.waiting_time is not None:
        record["waitingTime"] = times.duration(said.waiting_time)
    return record


def _gather_facts(said: GangDeclaration) -> Record:
    """How its pods are to be gathered; as if nothing were said where that cannot be read."""
    source = said.annotations.get(GANG_TOPOLOGY_SPEC, "")
    try:
        rules = read_gather_rules(source, GANG_TOPOLOGY_SPEC)
    except ObjectError:
        source, rules = "", ()
    return {
        "gathers": bool(source),
        "mustGather": [rule.layer for rule in rules if rule.must],
        "multiples": {rule.layer: rule.multiple for rule in rules if rule.multiple > 1},
    }


def gang_facts(
    gang: Gang, group: GangGroup, times: Times, *, priority: int = 0, unplaced_for: int = 0
) -> Record:
    """A gang as it stands. `unplaced_for` is in nanoseconds."""
    namespace, _, name = gang.id.partition("/")
    said = gang.parameters
    return {
        "name": name,
        "namespace": namespace,
        "minimum": _NONE if said is None else said.minimum,
        "total": _NONE if said is None else said.total,
        "mode": "" if said is None else said.mode,
        "matchPolicy": "" if said is None else said.match_policy,
        "pods": len(gang.pods),
        "pending": len(gang.pending),
        "waiting": len(gang.waiting),
        "bound": len(gang.bound),
        "onceSatisfied": group.once_satisfied,
        "rounds": group.rounds,
        "priority": priority,
        "unplacedFor": times.duration(unplaced_for),
    }


@dataclass(frozen=True, slots=True)
class GangPods:
    """What the pods of a PodGroup do: how many there are, are bound, run, have ended well, have failed."""

    pods: int = 0
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


def pod_group_facts(found: PodGroup, phase: str, pods: GangPods, times: Times, now: int) -> Record:
    """A PodGroup with what its pods do. `now` is in nanoseconds since 1970."""
    namespace, name = found.key
    return {
        "name": name,
        "namespace": namespace,
        "phase": phase,
        "minMember": found.minimum,
        "pods": pods.pods,
        "bound": pods.bound,
        "running": pods.running,
        "succeeded": pods.succeeded,
        "failed": pods.failed,
        "age": times.duration(0 if found.created_at is None else max(0, now - found.created_at)),
    }
