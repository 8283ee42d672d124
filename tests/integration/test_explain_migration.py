"""`koordpolicy explain migration`: why a migration was made, where its pod goes, and what it waits for."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.picture import of_manifests
from koordpolicy.cli.terminal import Terminal
from koordpolicy.kube.scrubbing import scrubbed_object
from koordpolicy.kube.snapshot import KEPT, Snapshot, write_snapshot
from koordpolicy.model.protocol import (
    DESCHEDULING_PROFILE,
    EVICT_REASON,
    EVICT_TRIGGER,
    PASSED_ARBITRATION,
)
from koordpolicy.model.time import time_text
from tests.unit.descheduler import clusters

MADE = {
    EVICT_TRIGGER: "LowNodeLoad",
    EVICT_REASON: "node is overutilized",
    DESCHEDULING_PROFILE: "koord-descheduler",
}
BEGUN = {**MADE, PASSED_ARBITRATION: "true"}
ROOM = {"reservationOptions": {"reservationRef": {"name": "room"}}}
AGE = 60


def job(
    pod: str,
    annotations: Mapping[str, str] = MADE,
    spec: Mapping[str, Any] | None = None,
    conditions: Sequence[Mapping[str, str]] = (),
    **status: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "PodMigrationJob",
        "metadata": {
            "name": f"move-{pod}",
            "uid": f"uid-move-{pod}",
            "creationTimestamp": time_text(clusters.NOW - AGE * 10**9),
            "annotations": dict(annotations),
        },
        "spec": {"podRef": {"namespace": "default", "name": pod}, "mode": "ReservationFirst", "ttl": "300s"}
        | dict(spec or {}),
        "status": {**status, "conditions": list(conditions)},
    }


def room(node: str = "", *conditions: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "room", "uid": "uid-room"},
        "spec": {"template": {"spec": {"containers": []}}, "owners": []},
        "status": {
            "phase": "Available" if node else "Pending",
            "nodeName": node,
            "conditions": list(conditions),
        },
    }


def condition(type: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": type, "status": status, "reason": reason, "message": message}


FULL = "0/2 nodes are available: 2 Insufficient cpu."
CASES: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "it has not been let begin": (
        [job("first")],
        "It waits for arbitration, which takes jobs in their order",
        "Migration.arbitration.order",
    ),
    "as many pods of its node migrate as may": (
        [job("first"), *(job(one, BEGUN, phase="Running") for one in ("second", "third"))],
        "It waits for arbitration: as many pods of its node migrate as may",
        "Migration.limits.perNode",
    ),
    "as many of its workload are away as may be": (
        [job("first"), job("far", BEGUN, phase="Running")],
        "It waits for arbitration: as many pods of its workload migrate as may",
        "Migration.workload.migrating",
    ),
    "it is paused": ([job("first", spec={"paused": True})], "Now: it is paused", ""),
    "its time is over": ([job("first", spec={"ttl": "30s"})], "its time is over", ""),
    "its Reservation waits for a node": (
        [job("first", BEGUN, ROOM, phase="Running"), room()],
        "It waits for the scheduler, which has to find a node for the Reservation `room`",
        "",
    ),
    "no node has room for it": (
        [
            job("first", BEGUN, ROOM, phase="Running"),
            room("", condition("Scheduled", "False", "Unschedulable", FULL)),
        ],
        f"the scheduler finds no node for its Reservation: {FULL}",
        "",
    ),
    "room is kept": (
        [job("first", BEGUN, ROOM, phase="Running"), room("empty", condition("Scheduled", "True"))],
        "It goes to empty: the scheduler has placed the Reservation room there.",
        "Migration.frequency.workload.most",
    ),
    "its budget does not let it go": (
        [
            job(
                "first",
                BEGUN,
                ROOM,
                [condition("Eviction", "False", "FailedEvict", "a budget")],
                phase="Running",
            ),
            room("empty"),
        ],
        "its pod was not let go, and that is tried again: a budget",
        "Migration.retryAfter",
    ),
    "a new pod is to come": (
        [
            job("first", BEGUN, ROOM, [condition("Eviction", "True", "EvictComplete")], phase="Running"),
            room("empty"),
        ],
        "It waits for a new pod of its owner, which takes the room that is kept",
        "",
    ),
    "it is over": (
        [job("first", BEGUN, phase="Failed", reason="Timeout", message="Abort job caused by timeout")],
        "It is over: Timeout: Abort job caused by timeout.",
        "",
    ),
}


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    return tmp_path / "cluster.json"


def write(picture: Path, more: Sequence[Mapping[str, Any]]) -> None:
    pods = [clusters.pod(name, "full", "2") for name in ("first", "second", "third")]
    for one in pods[1:]:
        one["metadata"]["ownerReferences"][0]["uid"] = one["metadata"]["name"]  # of others
    pods.append(clusters.pod("far", "empty", "2"))
    for one in pods:
        one["spec"]["schedulerName"] = "koord-scheduler"
        one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    web = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}},
    }
    nodes = [{"apiVersion": "v1", "kind": "Node", **clusters.node(name)} for name in ("full", "empty")]
    reports = [
        {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", **clusters.report("full", {})}
    ]
    items = [*nodes, *reports, *({"apiVersion": "v1", "kind": "Pod", **one} for one in pods), web, *more]
    picture.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))


def call(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["explain", "migration", *words], Terminal(out, err))
    return code, " ".join(out.getvalue().split()), err.getvalue()


@pytest.mark.parametrize("case", CASES)
def test_what_a_migration_waits_for(case: str, picture: Path) -> None:
    more, said, decision = CASES[case]
    write(picture, more)
    code, text, _ = call("move-first", "-f", str(picture))
    assert code == 0
    assert said in text
    assert "Made by LowNodeLoad of koord-descheduler: node is overutilized" in text
    assert "switched on at" in text
    if decision:
        assert f"{decision}, koordinator/descheduling/migration.yaml:" in text


def test_it_says_how_long_it_may_take_yet(picture: Path) -> None:
    write(picture, [job("first")])
    _, text, _ = call("first", "-f", str(picture), "-o", "json")
    found = json.loads(text)
    assert (found["phase"], found["secondsLeft"]) == ("Pending", 300 - AGE)
    (waits,) = found["waitsFor"]
    assert waits["decision"] == "Migration.arbitration.order"


def test_what_there_is_none_of_is_said(picture: Path) -> None:
    write(picture, [job("first")])
    code, _, said = call("second", "-f", str(picture))
    assert code == 2
    assert "there is no PodMigrationJob `second`, nor one of a pod of that name" in said
    assert "koordpolicy explain move second" in said


def test_a_snapshot_holds_all_that_it_takes(picture: Path, tmp_path: Path) -> None:
    more, said, _ = CASES["as many of its workload are away as may be"]
    write(picture, more)
    seen = of_manifests([str(picture)])
    objects = {str(one): [scrubbed_object(one, obj) for obj in seen.of(one)] for one in KEPT if seen.of(one)}
    write_snapshot(Snapshot(clusters.NOW, objects), tmp_path / "snapshot.json")
    code, text, _ = call("first", "-s", str(tmp_path / "snapshot.json"))
    assert code == 0
    assert said in text
