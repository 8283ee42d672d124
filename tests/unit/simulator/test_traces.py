"""Workloads from files: what is read, and what is said of files that cannot be."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from koordpolicy.kube.snapshot import Snapshot, write_snapshot
from koordpolicy.model.devices import read_devices
from koordpolicy.simulator.traces import read_described, read_workload
from koordpolicy.simulator.workload import Arrival, Wave, WorkloadError

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,786432,8,T4\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time\n"
    "late,12000,16384,2,1000,T4|A10,LS,Running,100,400\n"
    "early,6000,12288,1,460,,BE,Running,0,50\n"
)


ONE_NODE = "nodes: [{name: n, count: 2, cpu: 8, memory: 16Gi}]"
MANY_NODES = "nodes:" + "\n  - {name: n, count: 100000, cpu: 8, memory: 16Gi}" * 12


def files(tmp_path: Path, nodes: str = NODES, pods: str = PODS, suffix: str = ".csv") -> tuple[Path, Path]:
    paths = tmp_path / f"nodes{suffix}", tmp_path / f"pods{suffix}"
    for path, text in zip(paths, (nodes, pods), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def resources(arrival: Arrival) -> dict[str, str]:
    requests: dict[str, str] = arrival.pod["spec"]["containers"][0]["resources"]["requests"]
    return requests


SERVING_NODES = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,2\nH800,8,192,7\n"
SERVING_PODS = (
    "instance_sn,role,app_name,cpu_request,gpu_request,rdma_request,memory_request,creation_time,deletion_time\n"
    "instance_1,HN,app_0,12,1,25,120.0,475.00000000000006,900.0\n"
    "instance_0,CN,app_1,64,0,1,320.0,,\n"
)


def test_serving_gpus_become_nodes_devices_and_arrivals(tmp_path: Path) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(SERVING_NODES, encoding="utf-8")
    pods.write_text(SERVING_PODS, encoding="utf-8")
    workload = read_workload(nodes, pods)
    offered = [node["status"]["allocatable"] for node in workload.nodes]
    assert [(one["koordinator.sh/gpu"], one["koordinator.sh/rdma"], one["memory"]) for one in offered] == [
        ("100", "100", "1024Gi"),
        ("800", "400", "1536Gi"),
    ]
    kinds = [Counter(one.type for one in read_devices(device).devices) for device in workload.objects]
    assert kinds == [{"gpu": 1, "rdma": 1}, {"gpu": 8, "rdma": 4}]
    first, second = workload.arrivals
    assert (first.time, first.duration, second.time, second.duration) == (0, None, 475 * 10**9, 425 * 10**9)
    assert resources(first) == {"cpu": "64", "memory": "320Gi", "koordinator.sh/rdma": "1"}
    assert resources(second)["koordinator.sh/gpu"] == "100"


@pytest.mark.parametrize("amounts", ["cap_cpu,cap_mem", "cap_cpu_cores,cap_mem_gib"])
def test_machines_with_gpus_become_nodes_and_devices(tmp_path: Path, amounts: str) -> None:
    lines = f"machine,gpu_type,{amounts},cap_gpu\nm1,CPU,96,512,0\nm2,T4,64,256,2\n"
    workload = read_workload(*files(tmp_path, lines))
    plain, with_gpus = (node["status"]["allocatable"] for node in workload.nodes)
    assert plain == {"cpu": "96", "memory": "512Gi", "pods": "256"}
    assert (with_gpus["memory"], with_gpus["koordinator.sh/gpu"]) == ("256Gi", "200")
    assert workload.nodes[1]["metadata"]["labels"]["node.koordinator.sh/gpu-model"] == "T4"
    assert [len(read_devices(one).devices) for one in workload.objects] == [2]


TASKS = (
    "job_id,task_id,submit_s,duration_s,instances,cpu_cores_per_instance,mem_norm_per_instance\n"
    "9,23,7448,73.6,200,0.5,0.0625\n"
    "1,1,539,116.4,3,1.0,0.00540\n"
)


def test_batch_tasks_become_a_pod_an_instance(tmp_path: Path) -> None:
    workload = read_workload(*files(tmp_path, pods=TASKS))
    first, *_, last = workload.arrivals
    assert len(workload.arrivals) == 203
    assert (first.time, first.duration, last.time) == (539 * 10**9, 116_400_000_000, 7448 * 10**9)
    assert first.pod["metadata"]["name"] == "job-1-task-1-0"
    assert first.pod["spec"]["priorityClassName"] == "koord-batch"
    # A sixteenth of the larger node.
    assert resources(last) == {"cpu": "500m", "memory": str(48 << 30)}
    assert len({one.pod["metadata"]["name"] for one in workload.arrivals}) == 203


@pytest.mark.parametrize(
    "pods",
    [TASKS, PODS.splitlines()[0] + "\n" + "".join(f"p{n},1,1,0,0,,LS,Running,0,9\n" for n in range(200))],
)
def test_the_seed_draws_which_pods_are_taken(tmp_path: Path, pods: str) -> None:
    paths = files(tmp_path, pods=pods)
    names = [
        [
            one.pod["metadata"]["name"]
            for one in read_workload(*paths, 0.25, np.random.default_rng(seed)).arrivals
        ]
        for seed in (1, 1, 2)
    ]
    assert names[0] == names[1] != names[2]
    assert all(25 < len(one) < 75 for one in names)


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        (
            TASKS.replace(",200,", ",20000000,"),
            "pods.csv:2: more than 1,000,000 instances by then; take a share",
        ),
        (TASKS.replace(",200,", ",0,").replace(",3,", ",0,"), "there is no pod in it that is to run"),
    ],
)
def test_broken_tasks_are_told_by_place(tmp_path: Path, pods: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(message)):
        read_workload(*files(tmp_path, pods=pods))


def test_a_mark_of_byte_order_is_no_part_of_a_column(tmp_path: Path) -> None:
    plain, marked = (read_workload(*files(tmp_path, pods=mark + PODS)).arrivals for mark in ("", "\ufeff"))
    assert plain == marked


def test_openb_becomes_nodes_and_arrivals_in_order_of_time(tmp_path: Path) -> None:
    workload = read_workload(*files(tmp_path))
    assert [node["status"]["allocatable"].get("koordinator.sh/gpu") for node in workload.nodes] == [
        None,
        "800",
    ]
    (device,) = workload.objects  # of the node that has GPUs
    listed = read_devices(device)
    assert [(one.type, one.minor, one.healthy) for one in listed.devices] == [
        ("gpu", at, True) for at in range(8)
    ]
    early, late = workload.arrivals
    assert (early.time, early.duration, late.time, late.duration) == (0, 50 * 10**9, 100 * 10**9, 300 * 10**9)
    assert resources(early) == {"cpu": "6000m", "memory": "12288Mi", "koordinator.sh/gpu": "46"}
    assert resources(late)["koordinator.sh/gpu"] == "200"
    assert early.pod["metadata"]["labels"] == {"koordinator.sh/qosClass": "BE"}
    assert early.pod["spec"]["priorityClassName"] == "koord-batch"
    assert "priorityClassName" not in late.pod["spec"]
    assert "affinity" in late.pod["spec"]
    assert workload.horizon() == 400 * 10**9


@pytest.mark.parametrize(
    ("nodes", "pods", "message"),
    [
        ("sn,cpu_milli,memory_mib\n", PODS, "nodes.csv: there is no node in it"),
        (NODES, PODS.replace("early", "e" * 200_000), "pods.csv:3: no line of a CSV file: field larger than"),
        (
            NODES + "".join(f"m{at},1,1,1024,T4\n" for at in range(977)),
            PODS,
            "nodes.csv:980: more than 1,000,000 devices of all nodes by then",
        ),
    ],
)
def test_a_broken_csv_is_told_by_file_and_line(tmp_path: Path, nodes: str, pods: str, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        read_workload(*files(tmp_path, nodes, pods))
    assert message in str(caught.value)


def test_a_missing_file_and_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="No such file"):
        read_workload(tmp_path / "none.csv", tmp_path / "none.csv")
    with pytest.raises(WorkloadError, match="No such file"):
        read_workload(tmp_path / "none", tmp_path / "none")
    (tmp_path / "nodes.xml").write_text("<nodes/>", encoding="utf-8")
    with pytest.raises(WorkloadError, match="unknown format"):
        read_workload(tmp_path / "nodes.xml", tmp_path / "nodes.xml")


NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
POD = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}


def test_lists_of_manifests_as_kubectl_prints_them(tmp_path: Path) -> None:
    timed = {
        **POD,
        "metadata": {
            "name": "q",
            "annotations": {
                "koordpolicy.io/arrives": "5m",
                "koordpolicy.io/runs": "1h",
                "koordpolicy.io/memory-growth": "2Gi",
            },
        },
    }
    ended = {**POD, "status": {"phase": "Succeeded"}}
    pods = json.dumps({"kind": "List", "items": [timed, POD, ended]})
    workload = read_workload(*files(tmp_path, json.dumps([NODE]), pods, ".json"))
    assert [(one.time, one.duration) for one in workload.arrivals] == [(0, None), (300 * 10**9, 3600 * 10**9)]
    assert [one.growth for one in workload.arrivals] == [0, 2 << 30]


def test_manifests_one_a_line(tmp_path: Path) -> None:
    lines = "\n".join([json.dumps(NODE), "", json.dumps(POD), ""])
    nodes, pods = files(tmp_path, lines, lines, ".jsonl")
    workload = read_workload(nodes, pods)
    assert (workload.nodes, [one.pod for one in workload.arrivals]) == ((NODE,), [POD])
    pods.write_text(f"{json.dumps(POD)}\n{{", encoding="utf-8")
    with pytest.raises(WorkloadError, match=r"pods\.jsonl:2: not valid JSON"):
        read_workload(nodes, pods)


def test_manifests_in_yaml(tmp_path: Path) -> None:
    nodes = "kind: List\nitems:\n- kind: Node\n  metadata: {name: n}\n  status: {allocatable: {cpu: 4}}\n"
    workload = read_workload(*files(tmp_path, nodes, "kind: Pod\nmetadata: {name: p}\n", ".yaml"))
    assert (workload.nodes[0]["metadata"]["name"], workload.arrivals[0].pod["metadata"]["name"]) == ("n", "p")
    assert workload.horizon() == 3600 * 10**9


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ('{"kind": "Pod",', "pods.json:1: not valid JSON"),
        ('{"kind": "Secret", "metadata": {"name": "x"}}', "expected a Pod, found the kind `Secret`"),
        ('{"kind": "Service", "metadata": {}}', "the Service has no `metadata.name`"),
        (
            '{"kind": "StorageClass", "metadata": {"name": "x"}, "provisioner": 7}',
            "provisioner: expected text",
        ),
        ('{"kind": "List", "items": 5}', "`items` of a List must be a list of objects"),
        ('{"kind": "List", "items": [7]}', "items[0]: expected an object"),
        ('{"metadata": {"name": 7}}', "metadata.name: expected text"),
        ('{"metadata": {}}', "the pod has no `metadata.name`"),
        ('{"items": [{"metadata": {}}]}', "items[0]: the pod has no `metadata.name`"),
        ('{"kind": {"a": 1}, "metadata": {"name": "p"}}', "expected a Pod, found the kind"),
        ('{"metadata": {"name": "\\ud800"}}', "pods.json:1: not valid JSON"),
        ('{"metadata": {"name": "p"}, "spec": {"priority": 1e999}}', "pods.json:1: not valid JSON"),
        ("[" * 100_000, "pods.json:1: not valid JSON (nested too deep)"),
        ('{"metadata": {"name": "p", "annotations": {"koordpolicy.io/runs": "-5m"}}}', "is negative"),
        (
            '{"metadata": {"name": "p", "annotations": {"koordpolicy.io/arrives": "2562047h"}}}',
            "annotation `koordpolicy.io/arrives`: `2562047h` is more than 80 years",
        ),
        (
            '{"metadata": {"name": "p", "annotations": {"koordpolicy.io/memory-growth": "-1Gi"}}}',
            "is negative",
        ),
        (
            '{"metadata": {"name": "p", "annotations": {"koordpolicy.io/memory-growth": "fast"}}}',
            "memory-growth",
        ),
    ],
)
def test_broken_manifests_are_told_by_place(tmp_path: Path, pods: str, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        read_workload(*files(tmp_path, json.dumps(NODE), pods, ".json"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ('[{"a": 1}]', "the node has no `metadata.name`"),
        ('{"items": [{"status": {}}]}', "items[0]: the node has no `metadata.name`"),
        ('{"metadata": {"name": "n"}, "status": 7}', "status: expected a mapping"),
    ],
)
def test_so_are_broken_nodes(tmp_path: Path, nodes: str, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        read_workload(*files(tmp_path, nodes, json.dumps(POD), ".json"))
    assert message in str(caught.value)


def test_items_need_no_kind(tmp_path: Path) -> None:
    bare = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
    workload = read_workload(*files(tmp_path, json.dumps({"items": [bare]}), json.dumps(POD), ".json"))
    assert [one["metadata"]["name"] for one in workload.nodes] == ["n"]


DESCRIBED = """\
day: 2h
nodes: [{name: n, count: 2, cpu: 8, memory: 16Gi}]
services: [{name: web, replicas: 3, cpu: 2, memory: 1Gi, base: 10%, peak: 40%, peakAt: 1h}]
jobs: [{name: job, count: 4, cpu: 1, memory: 1Gi, runs: 10m, from: 30m, to: 1h, labels: {workload: batch}}]
"""


def test_a_description_becomes_single_nodes_services_and_jobs(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text(DESCRIBED, encoding="utf-8")
    workload = read_described(file, np.random.default_rng(1))
    services = [one for one in workload.arrivals if one.duration is None]
    jobs = [one for one in workload.arrivals if one.duration is not None]
    assert (len(workload.nodes), len(services), len(jobs)) == (2, 3, 4)
    assert services[0].wave == Wave(0.1, 0.4, 1.0)
    minute = 60 * 10**9
    assert all(30 * minute <= job.time <= 60 * minute for job in jobs)
    assert all(5 * minute <= (job.duration or 0) <= 15 * minute for job in jobs)
    assert workload.horizon() == 120 * minute
    assert workload == read_described(file, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("count: 2", "count: two", "workload.yaml:2: `count` must be a whole number"),
        ("cpu: 8", "cpu: lots", "workload.yaml:2: `cpu`: "),
        ("base: 10%", "base: 110%", "workload.yaml:3: `base` must be a percentage"),
        ("runs: 10m", "runs: soon", "workload.yaml:4: `runs`: "),
        ("runs: 10m", "runs: 2562047h", "workload.yaml:4: `runs`: `2562047h` is more than 80 years"),
        (ONE_NODE, MANY_NODES, "workload.yaml:13: `count`: more than 1,000,000 nodes and pods by then"),
        ("to: 1h", "to: 10m", "workload.yaml:4: `to` lies before `from`"),
        ("replicas: 3, ", "", "workload.yaml:3: an entry of `services` needs `replicas`"),
        ("peakAt", "peaksAt", "workload.yaml:3: unknown key `peaksAt`"),
        ("{workload: batch}", "[batch]", "workload.yaml:4: `labels` must map names to text"),
        ("day: 2h", "day: [", "workload.yaml:"),
    ],
)
def test_a_broken_description_is_told_by_file_and_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text(DESCRIBED.replace(old, new), encoding="utf-8")
    with pytest.raises(WorkloadError) as caught:
        read_described(file, np.random.default_rng(1))
    assert message in str(caught.value)


def test_one_file_may_hold_a_cluster_with_all_that_is_beside_nodes_and_pods(tmp_path: Path) -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {}}
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": [NODE, claim, POD]}), encoding="utf-8")
    workload = read_workload(file, file)
    assert (len(workload.nodes), len(workload.arrivals), workload.objects) == (1, 1, (claim,))


@pytest.mark.parametrize("name", ["cluster.json", "cluster.json.gz"])
def test_a_snapshot_is_a_workload(tmp_path: Path, name: str) -> None:
    plain = {key: value for key, value in NODE.items() if key != "kind"}
    budget = {"metadata": {"name": "b", "namespace": "default"}, "spec": {}}
    objects: dict[str, list[Any]] = {
        "nodes": [plain],
        "pods": [POD],
        "poddisruptionbudgets.policy": [budget],
        "reservations": [],
    }
    write_snapshot(Snapshot(0, objects), tmp_path / name)
    workload = read_workload(tmp_path / name, tmp_path / name)
    assert (len(workload.nodes), len(workload.arrivals)) == (1, 1)
    assert workload.objects == ({"apiVersion": "policy/v1", **budget, "kind": "PodDisruptionBudget"},)


def test_pod_groups_of_both_makes_are_told_apart_in_files_and_snapshots(tmp_path: Path) -> None:
    ours = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}}
    kubernetes = {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    objects: dict[str, list[Any]] = {
        "nodes": [NODE],
        "pods": [POD],
        "podgroups.scheduling.sigs.k8s.io": [ours],
        "podgroups.scheduling.k8s.io": [kubernetes],
    }
    snapshot = tmp_path / "cluster.json"
    write_snapshot(Snapshot(0, objects), snapshot)
    found = read_workload(snapshot, snapshot).objects
    versions = ["scheduling.sigs.k8s.io/v1alpha1", "scheduling.k8s.io/v1alpha2"]
    assert [one["apiVersion"] for one in found] == versions
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps({"kind": "List", "items": [NODE, POD, *found]}), encoding="utf-8")
    assert read_workload(listed, listed).objects == found
