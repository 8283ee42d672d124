"""Nodes as values, and what their annotations say.

An annotation is user input: each has a reader of its own that raises `ObjectError` when it is
malformed, and the plugin that uses it decides what then happens.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.pod import PodCondition, read_condition
from koordpolicy.model.protocol import (
    CPU,
    CPU_NORMALIZATION_RATIO,
    MEMORY,
    NETWORK_BANDWIDTH,
    NODE_RESERVATION,
    RAW_ALLOCATABLE,
    RESOURCE_AMPLIFICATION_RATIO,
    USAGE_THRESHOLDS,
)
from koordpolicy.model.quantity import QuantityError, parse_quantity
from koordpolicy.model.reading import (
    NO_TEXT,
    NOTHING,
    Amounts,
    Json,
    ObjectError,
    amounts,
    embedded_object,
    flag,
    mapping,
    objects,
    read_amounts,
    text,
    texts,
)
from koordpolicy.model.time import parse_duration

APPLY_DEFAULT: Final = "Default"


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint."""

    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """What a node's annotation keeps for work outside Kubernetes.

    `resources` already has the cpu of `reserved_cpus` where those are named. `trims` says whether the
    allocatable amounts shrink (apply policy Default).
    """

    resources: Amounts
    reserved_cpus: frozenset[int] = frozenset()
    trims: bool = True


@dataclass(frozen=True, slots=True)
class UsageThresholds:
    """Load limits of one node in percent by resource; empty groups are inherited from the profile.

    `duration` in nanoseconds, 0 for the longest window.
    """

    usage: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    prod_usage: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    aggregated: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    aggregation: str = ""
    duration: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node. `raw` is the object as read; it takes no part in comparison."""

    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    annotations: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    capacity: Amounts = field(default_factory=lambda: NOTHING)
    allocatable: Amounts = field(default_factory=lambda: NOTHING)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    conditions: tuple[PodCondition, ...] = ()
    resource_version: str = ""
    raw: Json = field(default_factory=dict, compare=False, repr=False)

    @property
    def kubelet_reserved(self) -> Amounts:
        """Capacity less allocatable of cpu and memory, at least zero."""
        return {
            resource: max(0, self.capacity.get(resource, 0) - self.allocatable.get(resource, 0))
            for resource in (CPU, MEMORY)
        }


def read_node(obj: Json) -> Node:
    """A node from its JSON. Raises ObjectError with the place of what is malformed."""
    metadata = mapping(obj, "metadata")
    spec = mapping(obj, "spec")
    status = mapping(obj, "status")
    return Node(
        name=text(metadata, "name", "metadata"),
        labels=texts(metadata, "labels", "metadata"),
        annotations=texts(metadata, "annotations", "metadata"),
        capacity=amounts(status, "capacity", "status"),
        allocatable=amounts(status, "allocatable", "status"),
        taints=tuple(
            Taint(text(taint, "key"), text(taint, "effect"), text(taint, "value"))
            for taint in objects(spec, "taints", "spec")
        ),
        unschedulable=flag(spec, "unschedulable", "spec"),
        conditions=tuple(read_condition(found) for found in objects(status, "conditions", "status")),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        raw=obj,
    )


def node_reservation(annotations: Mapping[str, str]) -> NodeReservation | None:
    """The reservation annotation; None when absent. Raises ObjectError when malformed."""
    source = annotations.get(NODE_RESERVATION)
    if not source:
        return None
    declared = embedded_object(source, NODE_RESERVATION)
    resources = dict(amounts(declared, "resources", NODE_RESERVATION))
    try:
        cpus = parse_cpuset(text(declared, "reservedCPUs", NODE_RESERVATION))
    except ValueError as error:
        raise ObjectError(f"{NODE_RESERVATION}.reservedCPUs: {error}") from error
    if cpus:
        resources[CPU] = 1000 * len(cpus)
    policy = text(declared, "applyPolicy", NODE_RESERVATION)
    return NodeReservation(resources, cpus, trims=policy in ("", APPLY_DEFAULT))


def raw_allocatable(annotations: Mapping[str, str]) -> Amounts:
    """Allocatable amounts before amplification; empty when absent. Raises ObjectError."""
    source = annotations.get(RAW_ALLOCATABLE)
    return read_amounts(embedded_object(source, RAW_ALLOCATABLE), RAW_ALLOCATABLE) if source else NOTHING


def amplification_ratios(annotations: Mapping[str, str]) -> Mapping[str, float]:
    """Amplification ratio by resource; empty when absent. Raises ObjectError when malformed."""
    source = annotations.get(RESOURCE_AMPLIFICATION_RATIO)
    if not source:
        return {}
    ratios: dict[str, float] = {}
    for resource, ratio in embedded_object(source, RESOURCE_AMPLIFICATION_RATIO).items():
        if isinstance(ratio, bool) or not isinstance(ratio, int | float):
            raise ObjectError(f"{RESOURCE_AMPLIFICATION_RATIO}.{resource}: expected a number")
        ratios[resource] = float(ratio)
    return ratios


def network_bandwidth(annotations: Mapping[str, str]) -> int | None:
    """What the node's network can carry in bits per second; None when absent. Raises ObjectError unless a quantity."""
    source = annotations.get(NETWORK_BANDWIDTH)
    if source is None:
        return None
    try:
        bits = parse_quantity(source).units
    except QuantityError as error:
        raise ObjectError(f"{NETWORK_BANDWIDTH}: {error}") from None
    if bits < 0:
        raise ObjectError(f"{NETWORK_BANDWIDTH}: `{source[:32]}` is below zero")
    return bits


def normalization_ratio(annotations: Mapping[str, str]) -> float | None:
    """The CPU normalisation ratio; None when absent. Raises ObjectError unless a number above zero."""
    source = annotations.get(CPU_NORMALIZATION_RATIO)
    if source is None:
        return None
    try:
        ratio = float(source)
    except ValueError:
        ratio = math.nan
    if not (math.isfinite(ratio) and ratio > 0):
        raise ObjectError(f"{CPU_NORMALIZATION_RATIO}: `{source[:32]}` is not a ratio above zero")
    return ratio


def usage_thresholds(annotations: Mapping[str, str]) -> UsageThresholds | None:
    """The node's own load limits; None when absent. Raises ObjectError when malformed.

    The aggregated group counts only with both thresholds and an aggregation; else it reads as empty.
    """
    source = annotations.get(USAGE_THRESHOLDS)
    if not source:
        return None
    declared = embedded_object(source, USAGE_THRESHOLDS)
    aggregated = mapping(declared, "aggregatedUsage", USAGE_THRESHOLDS)
    limits = _percents(aggregated, "usageThresholds")
    aggregation = text(aggregated, "usageAggregationType", USAGE_THRESHOLDS)
    duration = _window(aggregated)
    counts = bool(limits and aggregation)
    return UsageThresholds(
        usage=_percents(declared, "usageThresholds"),
        prod_usage=_percents(declared, "prodUsageThresholds"),
        aggregated=limits if counts else NOTHING,
        aggregation=aggregation if counts else "",
        duration=duration if counts else 0,
    )


def physical_allocatable(node: Node) -> Amounts:
    """Allocatable amounts as the machine has them: the raw ones override the amplified ones.

    An unreadable annotation leaves the published amounts.
    """
    try:
        return {**node.allocatable, **raw_allocatable(node.annotations)}
    except ObjectError:
        return node.allocatable


def annotation_reserved(node: Node) -> Amounts:
    """cpu and memory of the reservation annotation; zeros when absent or unreadable."""
    try:
        declared = node_reservation(node.annotations)
    except ObjectError:
        declared = None
    resources = NOTHING if declared is None else declared.resources
    return {resource: resources.get(resource, 0) for resource in (CPU, MEMORY)}


def _percents(parent: Json, key: str) -> Mapping[str, int]:
    limits: dict[str, int] = {}
    for resource, percent in mapping(parent, key, USAGE_THRESHOLDS).items():
        if isinstance(percent, bool) or not isinstance(percent, int):
            raise ObjectError(f"{USAGE_THRESHOLDS}.{key}.{resource}: expected a whole percentage")
        limits[resource] = percent
    return limits


def _window(aggregated: Json) -> int:
    source = text(aggregated, "usageAggregatedDuration", USAGE_THRESHOLDS)
    try:
        return parse_duration(source) if source else 0
    except ValueError as error:
        raise ObjectError(f"{USAGE_THRESHOLDS}.usageAggregatedDuration: {error}") from error
