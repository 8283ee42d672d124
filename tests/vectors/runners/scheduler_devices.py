"""Runners of devices: what is asked for, which cards are taken, how good a node's are."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from koordpolicy.algorithms.device_need import (
    DeviceNeed,
    DeviceRequestError,
    DeviceWords,
    by_strategy,
    device_need,
)
from koordpolicy.algorithms.device_partition import Partition, Partitions, best_partitions
from koordpolicy.algorithms.device_pick import SCOPES, Card, Unpicked, pick_by_topology
from koordpolicy.algorithms.device_score import node_score, weighted_score
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

_RATIO, _CORE, _MEMORY = (f"koordinator.sh/gpu-{name}" for name in ("memory-ratio", "core", "memory"))
_SHARED, _RDMA = "koordinator.sh/gpu.shared", "koordinator.sh/rdma"
_NPU = [f"huawei.com/npu-{name}" for name in ("core", "cpu", "dvpp")]


def _sets(*names: Sequence[str]) -> frozenset[frozenset[str]]:
    return frozenset(frozenset(one) for one in names)


_GPU = DeviceWords(
    _sets(
        ["nvidia.com/gpu"], ["amd.com/gpu"], ["dcu.com/gpu"], ["koordinator.sh/gpu"], [_MEMORY], [_RATIO],
        [_CORE, _MEMORY], [_CORE, _RATIO], [_NPU[0], _RATIO], [_SHARED, _MEMORY], [_SHARED, _RATIO],
        [_SHARED, _CORE, _MEMORY], [_SHARED, _CORE, _RATIO], [_SHARED, *_NPU[:2], _MEMORY], [_SHARED, *_NPU, _MEMORY],
    ),
    {
        "koordinator.sh/gpu": {_CORE: 1, _RATIO: 1},
        **{f"{vendor}.com/gpu": {_CORE: 100, _RATIO: 100} for vendor in ("nvidia", "amd", "dcu")},
    },
    frozenset({"koordinator.sh/gpu", _CORE, _RATIO}),
    _SHARED,
    _RATIO,
    frozenset({_MEMORY}),
    {_NPU[0]: {_SHARED: 1, _NPU[2]: 100}},
)  # fmt: skip

_NIC = DeviceWords(_sets([_RDMA]), percents=frozenset({_RDMA}), measured=_RDMA)


def gpu_normalise(given: Given) -> Given:
    try:
        need = device_need(dict(given["requests"]), _GPU)
    except DeviceRequestError:
        return {"valid": False}
    assert need is not None
    return {
        "valid": True,
        "converted": need.asked,
        "count": need.count,
        "perDevice": need.each,
        "shared": need.shared,
    }


def rdma_normalise(given: Given) -> Given:
    strategy, devices = given.get("allocateStrategy", ""), given["devices"]
    try:
        need = device_need({_RDMA: given["rdma"]}, _NIC)
    except DeviceRequestError:
        return {"valid": False}
    assert need is not None
    need = by_strategy(need, strategy, devices, alone=given.get("exclusivePolicy") == "DeviceLevel")
    return {"count": need.count, "perDevice": need.each[_RDMA]} if need.count else {"valid": False}


def gpu_topology(given: Given) -> Given:
    where = {
        int(minor): (int(numa), f"pcie{pcie}")
        for numa, switches in re.findall(r"numa(\d+): ([^;]*)", given["topology"])
        for pcie, minors in re.findall(r"pcie(\d+)=\[([\d,]+)\]", switches)
        for minor in minors.split(",")
    }
    free = {int(minor): amount for minor, amount in given["freeRatioPerMinor"].items()}
    cards = [
        Card(at, {_CORE: 100, _RATIO: 100}, {_CORE: left, _RATIO: left}, *where[at])
        for at, left in free.items()
    ]
    each: dict[str, int] = dict.fromkeys((_CORE, _RATIO), int(given["perDeviceRatio"]))
    need = DeviceNeed(given["count"], each, given["perDeviceRatio"] < 100, {})
    weights = {f"koordinator.sh/{name}": 1 for name in given["scoredResources"]}

    def key(card: Card) -> int:
        # What the whole has and what is free are swapped in the reference.
        return -weighted_score(card.free, card.total, each, weights, given["scoring"])

    try:
        return {"minors": list(pick_by_topology(cards, need, key, SCOPES[given["requiredTopologyScope"]]))}
    except Unpicked as why:
        return {"error": str(why)}


def gpu_partition(given: Given) -> Given:
    assert given["honor"]
    table = _PAIRS if given["table"] == "hopper built-in" else _table(given["partitions"])
    try:
        found = best_partitions(
            table,
            given["gpus"],
            given["usedMinors"],
            range(8),
            {8: 10000, 4: 100, 2: 1},
            first_group_only=given["specAllocatePolicy"] == "Restricted",
        )
    except Unpicked as why:
        return {"error": str(why)}
    return {"anyOf": sorted(map(list, found))}


def _table(partitions: Mapping[str, Sequence[Given]]) -> Partitions:
    return {
        int(size): [Partition(frozenset(one["minors"]), one["allocationScore"]) for one in listed]
        for size, listed in partitions.items()
    }


_PAIRS: Partitions = {
    size: [Partition(frozenset(range(at, at + size))) for at in range(0, 8, size)] for size in (1, 2, 4, 8)
}


def device_node_score(given: Given) -> Given:
    name = given["resource"]

    def amounts(numbers: Sequence[int]) -> list[dict[str, int]]:
        return [{name: number} for number in numbers]

    totals, frees = amounts(given["totalPerMinor"]), amounts(given["freePerMinor"])
    return {
        "rawScore": node_score(totals, frees, {name: given["perDeviceRequest"]}, {name: 1}, given["strategy"])
    }


RUNNERS: Mapping[str, Runner] = {
    "gpu-normalise": Runner(gpu_normalise),
    "rdma-normalise": Runner(rdma_normalise),
    "gpu-topology": Runner(gpu_topology),
    "gpu-partition": Runner(gpu_partition),
    "device-node-score": Runner(device_node_score),
}
