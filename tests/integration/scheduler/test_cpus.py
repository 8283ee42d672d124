"""CPUs of their own on a real API server, over kills of the scheduler: no CPU is two pods', and none is lost."""

import json
from typing import Any

import pytest

from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.protocol import (
    CPU_TOPOLOGY,
    NUMA_TOPOLOGY_SPEC,
    QOS_CLASS,
    RESOURCE_SPEC,
    RESOURCE_STATUS,
)
from tests.integration.scheduler.sites import Site

PATH = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies"
SINGLE = json.dumps({"numaTopologyPolicy": "SingleNUMANode"})


def machine(site: Site, name: str, zones: int = 2, cpus: int = 8) -> None:
    """A node with so many zones of so many CPUs, two a core, and the object that tells of them.

    Of CPU as an amount it has twice as much: CPUs of their own run short first.
    """
    site.node(name, {"cpu": str(2 * zones * cpus), "memory": "16Gi", "pods": "60"})
    detail = [
        {"id": cpu, "core": cpu // 2, "socket": cpu // cpus, "node": cpu // cpus}
        for cpu in range(zones * cpus)
    ]
    amount = {"capacity": str(cpus), "allocatable": str(cpus), "available": str(cpus)}
    body = {
        "apiVersion": "topology.node.k8s.io/v1alpha1",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name, "annotations": {CPU_TOPOLOGY: json.dumps({"detail": detail})}},
        "topologyPolicies": ["None"],
        "zones": [
            {"name": f"node-{zone}", "type": "Node", "resources": [{"name": "cpu", **amount}]}
            for zone in range(zones)
        ],
    }
    site.do("POST", PATH, body)


def _pod(site: Site, name: str, cpus: int, qos: str = "LSR", **annotations: str) -> None:
    site.pod(
        name, str(cpus),
        metadata={"labels": {QOS_CLASS: qos}, "annotations": annotations},
        priorityClassName="important", terminationGracePeriodSeconds=0,
    )  # fmt: skip


def _status(site: Site) -> dict[str, tuple[str, dict[str, Any]]]:
    """The node of each pod that has one, and what it has there."""
    return {
        name: (
            one["spec"]["nodeName"],
            json.loads(one["metadata"].get("annotations", {}).get(RESOURCE_STATUS, "{}")),
        )
        for name, one in site.pods().items()
        if one["spec"].get("nodeName")
    }


def _check(site: Site, asked: dict[str, int]) -> None:
    """Every pod on a node has its own CPUs, as many as it asks for."""
    taken: dict[tuple[str, int], str] = {}
    for name, (node, has) in _status(site).items():
        cpus = parse_cpuset(has.get("cpuset", ""))
        assert len(cpus) == asked[name], (name, has)
        for cpu in cpus:
            assert (node, cpu) not in taken, f"{name} and {taken[node, cpu]} have CPU {cpu} of {node}"
            taken[node, cpu] = name


@pytest.mark.soak
def test_killed_again_and_again_no_cpu_is_two_pods(site: Site) -> None:
    for name in ("a", "b"):
        machine(site, name)
    asked: dict[str, int] = {}
    for at in range(3):
        with site.scheduler(f"s{at}", "--no-leader-elect") as scheduler:
            before = len(site.where())
            for number in range(3):
                name = f"p{at}-{number}"
                asked[name] = 2 + 2 * (number == 2)
                _pod(site, name, asked[name], "LSE" if number == 1 else "LSR")
            site.eventually(lambda before=before: len(site.where()) > before, "it binds some")  # type: ignore[misc]  # the default is the value
            scheduler.running.kill()
        _check(site, asked)
    with site.scheduler("last", "--no-leader-elect"):
        site.eventually(lambda: not site.waiting(), "all have CPUs")
        _check(site, asked)
        # 24 of 32 CPUs are taken: what nobody has is told, and given to whoever asks when a pod goes.
        spec = {RESOURCE_SPEC: json.dumps({"requiredCPUBindPolicy": "FullPCPUs"}), NUMA_TOPOLOGY_SPEC: SINGLE}
        asked["wide"] = 8
        _pod(site, "wide", 8, **spec)
        site.eventually(
            lambda: "no NUMA zone has 8 free CPUs" in site.refusal("wide")[1], "it is told what zones have"
        )
        for name in [name for name in asked if name.startswith("p") and site.where().get(name) == "a"]:
            site.gone(name)
        site.eventually(lambda: "wide" in site.where(), "it has the zone of those that went")
        _check(site, asked)
        node, has = _status(site)["wide"]
        assert (node, has["cpuset"]) in (("a", "0-7"), ("a", "8-15"))
        assert [one["resources"] for one in has["numaNodeResources"]] == [{"cpu": "8"}]
