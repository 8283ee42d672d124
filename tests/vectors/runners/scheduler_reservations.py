"""Runners of reservations: which a pod may take from, what is left there, and how full it would be."""

import json
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.reservation_capacity import (
    asks_for,
    filling,
    governed,
    masked,
    node_shortage,
    remained,
    reservation_shortage,
)
from koordpolicy.algorithms.reservation_match import MatchRules, match
from koordpolicy.model.pod import read_pod
from koordpolicy.model.pod_reservations import read_pod_reservations
from koordpolicy.model.protocol import (
    ALLOCATE_RESTRICTED,
    EXACT_MATCH_RESERVATION,
    RESERVATION_AFFINITY,
    RESERVATION_AVAILABLE,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reservation import read_reservation
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]


def reservation_capacity(given: Given) -> Given:
    found, policy = given["reservation"], given["allocatePolicy"]
    allocatable, held_back = found["allocatable"], found.get("reserved", {})
    names = governed(allocatable, policy, given["restrictedResources"] or None)
    restricted = names if policy == ALLOCATE_RESTRICTED else ()
    allocated = masked(found["allocated"], names)
    left = remained(allocatable, allocated, held_back)
    request, inside = given["podRequest"], given["preemptibleInReservation"]
    requested = dict(given["allPodsRequested"])
    for part in (given["matchedAllocated"], given["preemptibleOnNode"], inside):
        for name, amount in part.items():
            requested[name] = requested.get(name, 0) - amount
    node = given["nodeAllocatable"]
    required = given["requiredFromReservation"]
    by_node = node_shortage(request, node, requested, left)
    by_reservation = reservation_shortage(request, allocatable, allocated, restricted, held_back, inside)
    tried = required or asks_for(request, names)
    fits = tried and not by_node and not by_reservation
    if not fits and not required and not (tried and by_node):
        fits = not node_shortage(request, node, requested, {})
    return {
        "remaining": left,
        "checkedResources": list(restricted),
        "fits": fits,
        "insufficientByNode": sorted(by_node),
        "insufficientByReservation": sorted(by_reservation),
    }


def reservation_match(given: Given) -> Given:
    pod, found = given["pod"], given["reservation"]
    annotations = {}
    if "affinity" in pod:
        annotations[RESERVATION_AFFINITY] = json.dumps(pod["affinity"])
    if "exactMatch" in pod:
        annotations[EXACT_MATCH_RESERVATION] = json.dumps({"resourceNames": pod["exactMatch"]})
    metadata = {
        **{key: pod[key] for key in ("namespace", "name", "labels", "ownerReferences") if key in pod},
        "annotations": annotations,
    }
    read = read_pod({"metadata": metadata})
    status = {
        "phase": found.get("phase", RESERVATION_AVAILABLE),
        "nodeName": "node",
        "allocatable": {name: amount_text(name, n) for name, n in found.get("allocatable", {}).items()},
    }
    spec = {key: found[key] for key in ("owners", "unschedulable", "taints") if key in found}
    reservation = read_reservation(
        {
            "metadata": {"name": found["name"], "labels": found.get("labels", {})},
            "spec": {"allocateOnce": found.get("allocateOnce", False), "template": {}, **spec},
            "status": status,
        }
    )
    said = match(
        read,
        read_pod_reservations(read.labels, read.annotations),
        pod.get("requests", {}),
        reservation,
        found.get("assignedPods", 0),
        MatchRules(reservation.allocate_once, node_labels=given.get("nodeLabels", {})),
    )
    return {"matched": said.matched, "reason": str(said)}


def reservation_score(given: Given) -> Given:
    return {"score": filling(given["podRequest"], given["allocated"], given["allocatable"])}


RUNNERS: Final[Mapping[str, Runner]] = {
    "reservation-capacity": Runner(reservation_capacity),
    # The kind of an object is not compared: a reservation's owner is a pod whatever it says.
    "reservation-match": Runner(
        reservation_match, irrelevant=frozenset({"reservation.owners[].object.kind"})
    ),
    "reservation-score": Runner(reservation_score),
}
