"""What the manager writes of nodes beside overcommitted resources: their ratios and what they keep."""

import json
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.port import MergePatch
from koordpolicy.manager.webhooks.nodes import amplified_nodes
from koordpolicy.model import protocol as wire
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import document, graph

SPEEDS: dict[str, Any] = {"normalize": True, "turboRatios": {"value": {"Xeon": 1.25}}}
AMPLIFIED: dict[str, Any] = {"amplify": True, "ratios": {"value": {"cpu": 1.5, "memory": 1.2}}}


def cluster(kind: str, *specs: dict[str, Any]) -> SmallCluster:
    """A node under the built-in pack with these specs of a kind above it."""
    made = SmallCluster(graph(*(document(kind, f"o{at}", spec) for at, spec in enumerate(specs))))
    made.node()
    return made


def annotations(small: SmallCluster) -> dict[str, str]:
    found: dict[str, str] = small.store.get(resources.NODES, "n")["metadata"].get("annotations", {})
    return found


def topology(small: SmallCluster, info: str) -> None:
    obj = {"metadata": {"name": "n", "annotations": {wire.CPU_BASIC_INFO: info}}}
    small.store.create(resources.NODE_RESOURCE_TOPOLOGIES, obj)


def test_a_node_is_told_its_speed_once() -> None:
    small = cluster("Amplification")
    assert small.reconcile().writes  # type: ignore[union-attr]
    assert annotations(small)[wire.CPU_NORMALIZATION_RATIO] == "1.00"
    assert wire.RESOURCE_AMPLIFICATION_RATIO not in annotations(small)
    small.report()
    small.reconcile()
    assert small.reconcile().writes == ()  # type: ignore[union-attr]


def test_amplification_follows_a_new_speed_in_the_next_round() -> None:
    small = cluster("Amplification", {"parameters": {**SPEEDS, **AMPLIFIED}})
    topology(small, '{"cpuModel": "Xeon", "turboEnabled": true}')
    small.reconcile()
    assert annotations(small)[wire.CPU_NORMALIZATION_RATIO] == "1.25"
    assert annotations(small)[wire.RESOURCE_AMPLIFICATION_RATIO] == '{"cpu":1.50,"memory":1.20}'
    small.reconcile()
    assert annotations(small)[wire.RESOURCE_AMPLIFICATION_RATIO] == '{"cpu":1.88,"memory":1.20}'
    assert small.reconcile().writes == ()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("info", "ratio", "problem"),
    [
        ('{"cpuModel": "Epyc"}', 1.25, "0.0 is not between"),  # no ratio for the model
        ("{", 1.25, "0.0 is not between"),  # unreadable is unknown
        ('{"cpuModel": "Xeon", "turboEnabled": true}', 5.01, "not between 1.0 and 5.0"),
        ('{"cpuModel": "Xeon", "turboEnabled": true}', 0.99, "not between 1.0 and 5.0"),
    ],
)
def test_a_speed_that_is_not_believed_leaves_what_is_there(info: str, ratio: float, problem: str) -> None:
    small = cluster(
        "Amplification", {"parameters": {"normalize": True, "turboRatios": {"value": {"Xeon": ratio}}}}
    )
    topology(small, info)
    small.store.patch(
        resources.NODES,
        "n",
        MergePatch({"metadata": {"annotations": {wire.CPU_NORMALIZATION_RATIO: "1.10"}}}),
    )
    decided = small.reconcile()
    assert decided is not None
    assert problem in decided.changes["Amplification"].problems[0]
    assert annotations(small)[wire.CPU_NORMALIZATION_RATIO] == "1.10"
    assert annotations(small)[wire.RESOURCE_AMPLIFICATION_RATIO] == '{"cpu":1.10}'


@pytest.mark.parametrize(
    ("stands", "after"), [("1.25", "1.25"), ("1.24", "1.24"), ("1.23", "1.25"), ("?", "1.25")]
)
def test_a_speed_is_written_when_it_is_another(stands: str, after: str) -> None:
    small = cluster("Amplification", {"parameters": SPEEDS, "normalization": {"whenChangedBy": 0.015}})
    topology(small, '{"cpuModel": "Xeon", "turboEnabled": true}')
    small.store.patch(
        resources.NODES,
        "n",
        MergePatch({"metadata": {"annotations": {wire.CPU_NORMALIZATION_RATIO: stands}}}),
    )
    small.reconcile()
    assert annotations(small)[wire.CPU_NORMALIZATION_RATIO] == after


def test_a_ratio_below_the_least_amplifies_nothing() -> None:
    small = cluster("Amplification", {"parameters": AMPLIFIED})
    small.reconcile()
    assert wire.RESOURCE_AMPLIFICATION_RATIO in annotations(small)
    small.graph = graph(
        document("Amplification", "o", {"parameters": {"amplify": True, "ratios": {"value": {"cpu": 0.5}}}})
    )
    decided = small.reconcile()
    assert decided is not None
    assert "`cpu` is sold 0.5 times over" in decided.changes["Amplification"].problems[0]
    assert wire.RESOURCE_AMPLIFICATION_RATIO not in annotations(small)


# --- admission ------------------------------------------------------------------------------------


def reported(small: SmallCluster, cpu: str) -> dict[str, Any]:
    """What the kubelet reports, all of it, as it is stored then."""
    status = {"status": {"allocatable": {"cpu": cpu, "memory": "100Gi"}}}
    small.store.patch(resources.NODES, "n", MergePatch(status), subresource="status")
    found: dict[str, Any] = small.store.get(resources.NODES, "n")["status"]["allocatable"]
    return found


def test_reports_are_multiplied_and_the_amounts_before_kept() -> None:
    small = cluster("Amplification", {"parameters": AMPLIFIED, "admission": {"enabled": True}})
    small.reconcile()
    assert reported(small, "90")["cpu"] == "135"
    kept = json.loads(annotations(small)[wire.RAW_ALLOCATABLE])
    assert kept == {"cpu": "90", "memory": str(100 * 2**30)}
    assert reported(small, "80") == {"cpu": "120", "memory": str(120 * 2**30), "pods": "110"}


def test_without_ratios_the_kept_amounts_are_forgotten() -> None:
    small = cluster("Amplification", {"parameters": AMPLIFIED, "admission": {"enabled": True}})
    small.reconcile()
    reported(small, "90")
    small.graph = graph(document("Amplification", "o", {"admission": {"enabled": True}}))
    small.reconcile()
    assert reported(small, "90")["cpu"] == "90"
    assert wire.RAW_ALLOCATABLE not in annotations(small)


def test_reports_are_left_as_they_are_until_policy_says_otherwise() -> None:
    small = cluster("Amplification", {"parameters": AMPLIFIED})
    small.reconcile()
    assert reported(small, "90")["cpu"] == "90"
    assert amplified_nodes(small.graph) is None


def test_a_report_passes_that_cannot_be_multiplied() -> None:
    small = cluster("Amplification", {"admission": {"enabled": True}})
    small.store.patch(
        resources.NODES,
        "n",
        MergePatch({"metadata": {"annotations": {wire.RESOURCE_AMPLIFICATION_RATIO: "much"}}}),
    )
    assert reported(small, "90")["cpu"] == "90"


def test_an_api_server_asks_about_nodes_with_ratios_alone() -> None:
    scope = amplified_nodes(graph(document("Amplification", "o", {"admission": {"enabled": True}})))
    assert scope is not None
    assert wire.RESOURCE_AMPLIFICATION_RATIO in scope.condition
    assert wire.RAW_ALLOCATABLE in scope.condition


# --- reservations ---------------------------------------------------------------------------------

KEPT: dict[str, Any] = {"enabled": True, "cpu": 4, "memory": "8Gi"}


def test_what_is_kept_stands_in_an_annotation_and_counts_as_reserved() -> None:
    small = cluster("NodeReservation", KEPT)
    small.reconcile()
    assert json.loads(annotations(small)[wire.NODE_RESERVATION]) == {
        "resources": {"cpu": "4", "memory": str(8 * 2**30)},
        "applyPolicy": "Default",
    }
    small.report(system="1")
    small.reconcile()
    assert small.offered()["batch-cpu"] == "56k"  # 100 - 40 - 4
    assert small.reconcile().writes == ()  # type: ignore[union-attr]


def test_whole_cpus_are_kept() -> None:
    small = cluster("NodeReservation", {"enabled": True, "cpus": "0-2,5", "applyTo": "ReservedCPUsOnly"})
    small.reconcile()
    assert json.loads(annotations(small)[wire.NODE_RESERVATION]) == {
        "reservedCPUs": "0-2,5",
        "applyPolicy": "ReservedCPUsOnly",
    }


def test_cpus_that_are_none_change_nothing() -> None:
    small = cluster("NodeReservation", {"enabled": True, "cpus": "some"})
    decided = small.reconcile()
    assert decided is not None
    assert decided.changes["NodeReservation"].problems[0].startswith("cpus: ")
    assert wire.NODE_RESERVATION not in annotations(small)


@pytest.mark.parametrize("theirs", [False, True])
def test_only_what_policies_wrote_goes_with_them(theirs: bool) -> None:
    small = cluster("NodeReservation", KEPT)
    small.reconcile()
    if theirs:
        other = {"metadata": {"annotations": {wire.NODE_RESERVATION: '{"reservedCPUs": "0"}'}}}
        small.store.patch(resources.NODES, "n", MergePatch(other))
    small.graph = graph()
    small.reconcile()
    assert (wire.NODE_RESERVATION in annotations(small)) == theirs
    assert wire.RESERVATION_BY_POLICY not in annotations(small)
    small.report()
    small.reconcile()
    assert small.reconcile().writes == ()  # type: ignore[union-attr]


def test_a_reservation_that_policies_never_wrote_is_left_alone() -> None:
    small = SmallCluster(graph())
    small.node(annotations={wire.NODE_RESERVATION: '{"resources": {"cpu": "2"}}'})
    small.reconcile()
    assert annotations(small)[wire.NODE_RESERVATION] == '{"resources": {"cpu": "2"}}'


# --- devices --------------------------------------------------------------------------------------


def gpus(small: SmallCluster, *healthy: bool) -> None:
    core = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi"}
    spec = {"devices": [{"type": "gpu", "health": one, "resources": core} for one in healthy]}
    labels = {wire.GPU_VENDOR: "nvidia", "other": "label"}
    if small.store.find(resources.DEVICES, "n") is None:
        small.create(resources.DEVICES, {"metadata": {"name": "n", "labels": labels}, "spec": spec})
    else:
        small.store.patch(resources.DEVICES, "n", MergePatch({"spec": spec}))


def offered(small: SmallCluster) -> dict[str, Any]:
    status = small.store.get(resources.NODES, "n")["status"]
    assert status["capacity"] == status["allocatable"]
    return {name: amount for name, amount in status["allocatable"].items() if "koordinator.sh/" in name}


def test_healthy_devices_are_offered_and_go_with_the_last_one() -> None:
    small = SmallCluster(graph())
    small.node()
    gpus(small, True, True, False)
    small.reconcile()
    assert offered(small) == {wire.GPU_CORE: "200", wire.GPU_MEMORY: str(32 * 2**30), wire.GPU: "200"}
    labels = small.store.get(resources.NODES, "n")["metadata"]["labels"]
    assert labels[wire.GPU_VENDOR] == "nvidia"
    assert "other" not in labels
    small.reconcile()
    assert small.reconcile().writes == ()  # type: ignore[union-attr]
    gpus(small, False)
    small.reconcile()
    assert offered(small) == {}


def test_devices_that_cannot_be_decided_stay_as_they_are() -> None:
    small = SmallCluster(graph())
    small.node()
    gpus(small, True)
    small.reconcile()
    wrong = {"amount": {"cel": "node.devices[7].resources[resource]"}}
    small.graph = graph(document("DeviceResource", "gpu", wrong))
    gpus(small, True, True)
    decided = small.reconcile()
    assert decided is not None
    assert decided.changes["DeviceResource"].problems[0].startswith("gpu: ")
    assert offered(small)[wire.GPU_CORE] == "100"


def test_nodes_without_devices_are_left_alone() -> None:
    small = SmallCluster(graph())
    small.node()
    decided = small.reconcile()
    assert decided is not None
    assert decided.changes["DeviceResource"].resources == {}
