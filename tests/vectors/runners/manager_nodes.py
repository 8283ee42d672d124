"""Runners of the manager's node resources beyond batch and mid, and of histograms."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordpolicy.algorithms.histogram import Buckets, ExponentialBuckets, Histogram, LinearBuckets
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.exchange.importing import import_config
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.amplification import ratios_of
from koordpolicy.manager.controllers.device_resources import devices_of
from koordpolicy.manager.controllers.node_change import NodeChange
from koordpolicy.manager.webhooks.nodes import with_amplification
from koordpolicy.model.devices import read_devices
from koordpolicy.model.node import raw_allocatable, read_node
from koordpolicy.model.numa import read_cpu_info
from koordpolicy.model.protocol import (
    CPU_BASIC_INFO,
    CPU_NORMALIZATION_ENABLED,
    CPU_NORMALIZATION_RATIO,
    GPU,
    GPU_CORE,
    GPU_MEMORY,
    GPU_MEMORY_RATIO,
    GPU_SHARED,
    GPU_VENDOR,
    HUAWEI_NPU_CORE,
    HUAWEI_NPU_CPU,
    HUAWEI_NPU_DVPP,
    RAW_ALLOCATABLE,
    RDMA,
    RESOURCE_AMPLIFICATION_RATIO,
)
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import amounts, mapping, texts
from koordpolicy.model.slo_config import AMPLIFICATION, NORMALIZATION
from koordpolicy.model.time import NANOSECONDS
from tests.vectors.compare import EXACT, Comparison
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

_BEFORE = 999
_GPUS = (
    GPU,
    GPU_CORE,
    GPU_MEMORY,
    GPU_MEMORY_RATIO,
    GPU_SHARED,
    HUAWEI_NPU_CORE,
    HUAWEI_NPU_CPU,
    HUAWEI_NPU_DVPP,
)


def cpu_normalization(given: Given) -> Given:
    compiled = _imported(NORMALIZATION, given["strategy"])
    labels = {} if given.get("node_label") is None else {CPU_NORMALIZATION_ENABLED: given["node_label"]}
    said = json.dumps(dict(given["cpu_basic_info"]))
    change = _ratios(compiled, labels, {}, {CPU_BASIC_INFO: said})
    if change.problems:
        return {"error": True}
    return {"ratio": change.annotations[CPU_NORMALIZATION_RATIO]}


def resource_amplification(given: Given) -> Given:
    compiled, speed = _imported(AMPLIFICATION, given["strategy"]), given["node_cpu_normalization_ratio"]
    annotations = {RESOURCE_AMPLIFICATION_RATIO: '{"memory":7}'}
    if speed is not None:
        annotations[CPU_NORMALIZATION_RATIO] = str(speed)
    change = _ratios(compiled, {}, annotations, {})
    written = change.annotations[RESOURCE_AMPLIFICATION_RATIO]
    return {
        "error": bool(change.problems),
        "annotation_after": None if written is None else json.loads(written, parse_float=str),
    }


def _imported(key: str, strategy: Given) -> RuleGraph:
    """The policies that are imported of the cluster's part of a document."""
    return graph(*import_config({key: json.dumps(strategy)}, graph()).documents)


def _ratios(
    compiled: RuleGraph,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    topology: Mapping[str, str],
) -> NodeChange:
    node = read_node({"metadata": {"name": "node", "labels": labels, "annotations": annotations}})
    sight = NodeSight(node, cpu=read_cpu_info({"metadata": {"annotations": topology}}))
    return ratios_of(compiled, sight, node_record(sight, compiled.catalogue, TIMES, 0), 0)


def device_node_resource(given: Given) -> Given:
    devices: dict[str, Any] = {
        "metadata": {"labels": {GPU_VENDOR: given["vendor"]} if given.get("vendor") else {}},
        "spec": {
            "devices": [
                {"type": one["type"], "health": one["health"], "resources": dict(one["resources"])}
                for one in given["devices"]
            ]
        },
    }
    shared = {"parameters": {"shared": given.get("sync_shared_gate", False)}}
    compiled = graph(document("DeviceResource", "gpu", shared))
    offered = dict.fromkeys([*_GPUS, RDMA], _BEFORE)
    status = {key: _written(offered) for key in ("capacity", "allocatable")}
    sight = NodeSight(
        read_node({"metadata": {"name": "node"}, "status": status}), devices=read_devices(devices)
    )
    found = devices_of(compiled, sight, node_record(sight, compiled.catalogue, TIMES, 0), 0).resources
    return {"gpu": _offered(found, _GPUS), "rdma": _offered(found, [RDMA])}


def _offered(found: Mapping[str, int | None], names: Sequence[str]) -> object:
    """What a node offers of these, which offered something else of each before."""
    if all(found.get(name, _BEFORE) is None for name in names):
        return "reset"
    return {name: found[name] for name in names if name in found}


def node_amplification_admission(given: Given) -> Given:
    annotations = {}
    if given["ratio_annotation"] is not None:
        annotations[RESOURCE_AMPLIFICATION_RATIO] = json.dumps(dict(given["ratio_annotation"]))
    if given["raw_allocatable"] is not None:
        annotations[RAW_ALLOCATABLE] = json.dumps(_written(given["raw_allocatable"]))
    old, new = (
        {"metadata": {"annotations": annotations}, "status": {"allocatable": _written(given[key])}}
        for key in ("old_allocatable", "new_allocatable")
    )
    admitted = with_amplification(
        new, old, graph().about("Amplification", "", {}).value("admission.resources")
    )
    raw = raw_allocatable(texts(mapping(admitted, "metadata"), "annotations"))
    return {
        "allocatable": amounts(mapping(admitted, "status"), "allocatable"),
        "raw_allocatable": raw or None,
    }


def _written(given: Given) -> dict[str, str]:
    return {name: amount_text(name, number) for name, number in given.items()}


def histogram(given: Given) -> Given:
    half_life = given.get("half_life_seconds")
    found = Histogram(
        _buckets(given["options"]),
        given["epsilon"],
        None if half_life is None else half_life * NANOSECONDS,
    )
    for sample in given["samples"]:
        act = found.subtract if sample.get("op") == "subtract" else found.add
        act(sample["value"], sample["weight"], sample.get("t_seconds", 0) * NANOSECONDS)
    return {
        "buckets": found.buckets.count,
        "percentiles": _Percentiles(found),
        "checkpoint_bucket_weights": {
            str(bucket): weight for bucket, weight in found.checkpoint().weights.items()
        },
    }


def _buckets(options: Given) -> Buckets:
    if options["type"] == "linear":
        return LinearBuckets(options["max"], options["bucket_size"])
    return ExponentialBuckets(options["first_bucket"], options["ratio"], options["max"])


class _Percentiles(Mapping[str, float]):
    """All that there are: which of them are looked at, the vector says."""

    def __init__(self, of: Histogram) -> None:
        self._of = of

    def __getitem__(self, share: str) -> float:
        return self._of.percentile(float(share))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _Histograms(Comparison):
    """Files write the numbers of buckets as numbers or as text; not every vector looks at a checkpoint."""

    def difference(self, expected: object, found: object, at: str = "") -> str | None:
        if at == "checkpoint_bucket_weights" and isinstance(expected, Mapping):
            return EXACT.difference({str(bucket): weight for bucket, weight in expected.items()}, found, at)
        return super().difference(expected, found, at)


RUNNERS: Mapping[str, Runner] = {
    "cpu_normalization": Runner(cpu_normalization),
    "resource_amplification": Runner(resource_amplification),
    "device_node_resource": Runner(device_node_resource),
    "node_amplification_admission": Runner(node_amplification_admission),
    "histogram": Runner(histogram, _Histograms(relative=1e-9, only_expected=True)),
}
