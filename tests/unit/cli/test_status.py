"""What `koordpolicy status` makes of objects, and how it reads."""

import json
from typing import Any

import pytest

from koordpolicy.cli.statuses.found import ClusterStatus, KeptOutside, cluster_status
from koordpolicy.cli.statuses.text import status_data, status_lines
from koordpolicy.cli.statuses.waiting import GATED, UNSEEN
from koordpolicy.model.protocol import THIRD_PARTY_ALLOCATIONS
from koordpolicy.model.time import NANOSECONDS, parse_time, time_text

NOW = parse_time("2026-01-01T12:00:00Z")
GOOD, BAD = "a" * 40, "b" * 40


def revision(
    commit: str, minutes: int, *, ready: str = "True", reason: str = "Live", **status: Any
) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": f"it is {reason}"}
    return {
        "metadata": {
            "name": f"fleet-{commit[:12]}",
            "creationTimestamp": time_text(NOW - minutes * 60 * NANOSECONDS),
        },
        "spec": {"bundle": "fleet", "revision": commit, "digest": "sha256:" + commit, "commit": commit},
        "status": {"conditions": [condition], "rules": {"total": 312}, **status},
    }


def node(name: str, *, batch: str = "4000") -> dict[str, Any]:
    capacity = {"cpu": "10", "memory": "64Gi"}
    return {
        "metadata": {"name": name},
        "status": {"capacity": capacity, "allocatable": {**capacity, "kubernetes.io/batch-cpu": batch}},
    }


def metric(name: str, *, seconds: int = 30, allowed: str | None = None, runs: str = "") -> dict[str, Any]:
    status: dict[str, Any] = {
        "updateTime": time_text(NOW - seconds * NANOSECONDS),
        "nodeMetric": {"nodeUsage": {"resources": {"cpu": "3", "memory": "16Gi"}}},
    }
    if allowed is not None:
        status["bestEffort"] = {"allowed": {"cpu": allowed}}
    return {
        "metadata": {"name": name, "annotations": {"koordpolicy.io/runs": runs} if runs else {}},
        "spec": {},
        "status": status,
    }


def pod(name: str, batch: str, *, on: str = "n1", phase: str = "Running") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": on,
            "containers": [{"name": "m", "resources": {"requests": {"kubernetes.io/batch-cpu": batch}}}],
        },
        "status": {"phase": phase},
    }


def lease(
    name: str, holder: str, *, member: tuple[str, str] | None = None, seconds: int = 3
) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name}
    if member is not None:
        told["labels"] = {"koordpolicy.io/lease": "instance"}
        told["annotations"] = {"koordpolicy.io/component": member[0], "koordpolicy.io/instance": member[1]}
    renewed = time_text(NOW - seconds * NANOSECONDS)
    return {"metadata": told, "spec": {"holderIdentity": holder, "renewTime": renewed}}


INSTANCES = [
    {"name": "m-0", "component": "manager", "state": "Active"},
    {"name": "s-0", "component": "scheduler", "state": "Active"},
]
LEASES = [
    lease("koordpolicy-instance-manager-m-0", "m-0_1", member=("manager", "m-0")),
    lease("koordpolicy-instance-scheduler-s-0", "s-0_1", member=("scheduler", "s-0"), seconds=90),
    lease("koordpolicy-manager", "m-0_1"),
    lease("kube-scheduler", "other"),
]


def full() -> ClusterStatus:
    return cluster_status(
        {
            "policyrevisions": [
                revision(GOOD, 60, instances=INSTANCES),
                revision(
                    BAD, 2, ready="False", reason="DoesNotCompile",
                    instances=[{"name": "m-0", "component": "manager", "state": "Rejected"}],
                    diagnostics=[{"severity": "error", "code": "KP203", "message": "unknown name", "path": "a.yaml", "line": 4, "column": 9}],
                ),
            ],
            "leases": LEASES,
            "nodes": [node("n1"), node("n2"), node("n3")],
            "nodemetrics": [metric("n1", allowed="1500m"), metric("n2", seconds=600, allowed="8"), metric("gone")],
            "pods": [pod("a", "1000"), pod("b", "500"), pod("c", "9", phase="Succeeded"), pod("d", "7", on="")],
        },
        NOW,
    )  # fmt: skip


def test_processes_say_what_they_run_and_who_leads() -> None:
    manager, scheduler = full().processes
    assert (manager.instance, manager.runs, manager.rejects, manager.leads) == (
        "m-0",
        GOOD,
        BAD,
        ("koordpolicy-manager",),
    )
    assert (scheduler.runs, scheduler.leads) == (GOOD, ())
    assert scheduler.renewed == NOW - 90 * NANOSECONDS


def test_what_is_lent_counts_pods_on_nodes_that_are_not_over() -> None:
    [batch] = full().lent
    assert (batch.offered, batch.requested, batch.of, batch.nodes) == (12_000_000 // 1000, 1500, 30_000, 3)


def test_what_is_kept_for_schedulers_outside_is_told() -> None:
    given = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "2Gi"}
    allocations = [{"name": "hadoop-yarn", "priority": "koord-batch", "resources": given}]
    nodes = [node("n1"), node("n2"), node("n3"), node("n4")]
    for one in nodes[:2]:
        one["metadata"]["annotations"] = {THIRD_PARTY_ALLOCATIONS: json.dumps({"allocations": allocations})}
    nodes[2]["metadata"]["annotations"] = {THIRD_PARTY_ALLOCATIONS: "{"}
    found = cluster_status({"nodes": nodes}, NOW)
    assert found.kept_outside == (KeptOutside("hadoop-yarn", 3000, 4 << 30, 2),)
    [told] = found.unreadable
    assert told.startswith("Node `n3`: ")
    text = "\n".join(status_lines(found, NOW, 100))
    assert "3.0 cores and 4.0 GiB on 2 nodes for hadoop-yarn" in text
    assert status_data(found)["keptOutside"] == [
        {"scheduler": "hadoop-yarn", "cpu": 3000, "memory": 4 << 30, "nodes": 2}
    ]


def test_what_is_held_back_counts_nodes_that_allow_less_than_they_lend() -> None:
    held = full().suppressed
    assert (held.told, held.nodes, held.offered, held.allowed) == (2, 1, 4000, 1500)


def test_reports_of_nodes_that_are_gone_do_not_count() -> None:
    reports = full().reports
    assert (reports.nodes, len(reports.ages), reports.absent) == (3, 2, 1)
    assert reports.used["cpu"] == 6000


def test_troubles_are_named() -> None:
    assert full().troubles == (
        "the newest revision of `fleet` is not in force: DoesNotCompile",
        f"manager m-0 cannot take revision {BAD}",
        "1 of 3 nodes do not report what they use",
        "1 of 3 nodes have missed a report: their last one is older than twice the interval of their NodeMetric",
    )


@pytest.mark.parametrize(
    ("seconds", "interval", "late"), [(119, 60, 0), (121, 60, 1), (121, 300, 0), (25, 10, 1)]
)
def test_a_report_is_missed_by_the_interval_that_its_node_was_given(
    seconds: int, interval: int, late: int
) -> None:
    reported = metric("n1", seconds=seconds)
    reported["spec"] = {"metricCollectPolicy": {"reportIntervalSeconds": interval}}
    assert cluster_status({"nodes": [node("n1")], "nodemetrics": [reported]}, NOW).reports.late == late


def waits(name: str, said: str | None, *, seconds: int = 60, reason: str = "Unschedulable") -> dict[str, Any]:
    one = pod(name, "1", on="", phase="Pending")
    one["metadata"]["creationTimestamp"] = time_text(NOW - seconds * NANOSECONDS)
    if said is not None:
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": said}
        one["status"]["conditions"] = [condition]
    return one


def test_pods_that_wait_are_counted_by_what_keeps_them_from_most_nodes() -> None:
    room = "{} nodes are available: {} Insufficient cpu, 1 node(s) had untolerated taint {{a: b}}. preemption: 0/9 nodes are available: 9 x."
    found = cluster_status(
        {
            "pods": [
                waits("a", room.format("0/9", 8)),
                waits("b", room.format("0/4", 3), seconds=7200),
                waits("c", "gang `g` waits for 2 more pods"),
                waits("d", "Scheduling is blocked", reason="SchedulingGated"),
                waits("e", None),
                pod("placed", "1"),
                pod("over", "1", on="", phase="Failed"),
            ]
        },
        NOW,
    ).waiting
    assert (found.pods, found.oldest) == (5, 7200 * NANOSECONDS)
    assert found.reasons == (
        ("Insufficient cpu", 2),
        ("gang `g` waits for 2 more pods", 1),
        (GATED, 1),
        (UNSEEN, 1),
    )
    text = " ".join(
        " ".join(
            status_lines(cluster_status({"pods": [waits("a", room.format("0/9", 8))]}, NOW), NOW, 80)
        ).split()
    )
    assert "1 pod, the oldest for 1m. 1: Insufficient cpu" in text


def test_who_turns_back_from_an_aborted_revision_is_not_at_fault() -> None:
    rejected = [{"name": "m-0", "component": "manager", "state": "Rejected"}]
    found = cluster_status(
        {
            "policyrevisions": [
                revision(GOOD, 60),
                revision(BAD, 2, ready="False", reason="Aborted", instances=rejected),
            ],
            "leases": [lease("koordpolicy-instance-manager-m-0", "m-0_1", member=("manager", "m-0"))],
        },
        NOW,
    )
    [process] = found.processes
    assert (process.rejects, process.turned_back) == ("", BAD)
    assert found.troubles == ("the newest revision of `fleet` is not in force: Aborted",)


def rolled_out(state: str, *, instance: str = "m-0", **rollout: Any) -> ClusterStatus:
    """One manager, and a second revision at a step of its rollout."""

    def entries(state: str) -> list[dict[str, str]]:
        return [{"name": instance, "component": "manager", "state": state}]

    return cluster_status(
        {
            "policyrevisions": [
                revision(GOOD, 60, instances=entries("Active")),
                revision(BAD, 2, ready="False", reason="Rollout", instances=entries(state), rollout=rollout),
            ],
            "leases": [
                lease(f"koordpolicy-instance-manager-{instance}", "h", member=("manager", instance)),
                lease("koordpolicy-manager", "h"),
            ],
        },
        NOW,
    )


@pytest.mark.parametrize(("state", "key"), [("Shadow", "shadows"), ("Canary", "canary")])
def test_a_process_runs_the_revision_that_decides_and_tries_another(state: str, key: str) -> None:
    found = rolled_out(state, phase="Progressing")
    [process] = found.processes
    assert (process.runs, getattr(process, key)) == (GOOD, BAD)
    lines = list(status_lines(found, NOW, 80))
    assert f"manager    m-0       yes    {GOOD[:7]} ({state.lower()}: {BAD[:7]})  3s ago" in lines
    said = status_data(found)["processes"][0]
    assert (said["runs"], said[key]) == (GOOD, BAD)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("Shadow", f"shadow       1 of these compares its answers with those of {BAD[:12]}"),
        ("Canary", f"canary       1 of these decides for a part by {BAD[:12]}"),
    ],
)
def test_what_is_tried_stands_below_where_the_table_has_no_room(state: str, said: str) -> None:
    pod = "koordpolicy-manager-7d9c8b6f5-abcde"
    lines = list(status_lines(rolled_out(state, instance=pod, phase="Progressing"), NOW, 80))
    assert f"manager    {pod}  yes    {GOOD[:12]}  3s ago" in lines
    assert said in lines
    assert max(map(len, lines)) <= 80


def test_a_rollout_that_waits_for_somebody_is_to_be_looked_at() -> None:
    name = f"fleet-{BAD[:12]}"
    resume = f"koordpolicy rollout resume {name}"
    assert not [one for one in rolled_out("Shadow", phase="Progressing").troubles if "resume" in one]
    waits = rolled_out("Shadow", phase="Paused", message="waits to be resumed").troubles
    assert f"rollout `{name}` waits to be resumed: {resume}" in waits
    paused = rolled_out("Shadow", phase="Paused", message="paused by ann").troubles
    assert f"rollout `{name}` waits to be resumed (paused by ann): {resume}" in paused


def test_a_process_whose_source_fails_is_told_of() -> None:
    one = lease("koordpolicy-instance-manager-m-0", "m-0_1", member=("manager", "m-0"))
    one["metadata"]["annotations"]["koordpolicy.io/source-trouble"] = "/policies: gone"
    found = cluster_status({"leases": [one]}, NOW)
    assert "manager m-0 gets no new policies: /policies: gone" in found.troubles
    assert status_data(found)["processes"][0]["sourceTrouble"] == "/policies: gone"


def test_agents_in_a_dry_run_are_told_of_and_act_for_nobody() -> None:
    silent = metric("n2")
    silent["status"] = {}
    for each in (rehearsed := metric("n1", runs=json.dumps({"revision": GOOD})), silent):
        each["metadata"]["annotations"]["koordpolicy.io/dry-run"] = json.dumps({"revision": BAD})
    found = cluster_status({"nodes": [node("n1"), node("n2")], "nodemetrics": [rehearsed, silent]}, NOW)
    assert (found.agents, found.dry_runs) == ({GOOD: 1}, {BAD: 2})
    text = " ".join(" ".join(status_lines(found, NOW, 120)).split())
    assert f"agents 1 run {GOOD[:12]}" in text
    assert f"dry runs 2 by {BAD[:12]}: agents that tell and do nothing" in text
    assert (
        "1 of 2 nodes do not report what they use; the agents of 1 are in a dry run, which reports nothing"
        in found.troubles
    )
    assert status_data(found)["dryRunAgents"] == [{"revision": BAD, "agents": 2}]


def test_objects_that_cannot_be_read_are_told_and_left_out() -> None:
    found = cluster_status(
        {
            "nodes": [{"metadata": {"name": "odd"}, "status": {"capacity": {"cpu": "x"}}}],
            "pods": [{"metadata": 3}],
        },
        NOW,
    )
    assert found.reports.nodes == 0
    assert [one.partition(":")[0] for one in found.unreadable] == ["Node `odd`", "Pod ``"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_names_the_place_of_a_mistake(width: int) -> None:
    text = "\n".join(status_lines(full(), NOW, width))
    assert "a.yaml:4:9: KP203" in text
    assert "1.5 cores of 4.0 cores lent" in " ".join(text.split())


def test_hostile_names_do_not_reach_the_terminal() -> None:
    found = cluster_status(
        {"leases": [lease("koordpolicy-instance-x", "h", member=("manager", "a\x1b[31m"))]}, NOW
    )
    assert "\x1b" not in "\n".join(status_lines(found, NOW, 80))


def test_data_has_all_of_it() -> None:
    data = status_data(full())
    assert [one["ready"] for one in data["revisions"]] == ["False", "True"]
    assert data["lent"][0]["requested"] == 1500
    assert data["nodes"]["reportAges"] == {"youngest": 30.0, "median": 30.0, "oldest": 600.0}


def test_an_empty_cluster_says_so() -> None:
    text = "\n".join(status_lines(cluster_status({}, NOW), NOW, 80))
    assert "no revisions of policies" in text
    assert "no processes" in text
