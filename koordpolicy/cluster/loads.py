"""The load of nodes: what policy estimates of pods, and how it wants load counted, put to work."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.algorithms.load import AssignedPod, LoadReport, NodeLoad, ReportedPod, estimate_end
from koordpolicy.cluster.memoized import MemoizedDecision
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import Records, prepared
from koordpolicy.cluster.reservations import is_reserve_pod
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.load import Loads
from koordpolicy.model.facts.node import of_object
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.protocol import CONDITION_INITIALIZED, CONDITION_SCHEDULED
from koordpolicy.model.reading import Amounts

LAST = "last"
"""The aggregation that stands for the last measurement."""

_TRUE = "True"


@dataclass(frozen=True, slots=True)
class LoadRules:
    """How one node's load is counted."""

    resources: tuple[str, ...]
    prod_bands: frozenset[str]
    includes_system: bool
    filter_window: tuple[str, int]
    score_window: tuple[str, int]


class LoadPolicy:
    """A profile's estimator and rules of load, asked through programs made once."""

    __slots__ = (
        "_decisions",
        "_estimates",
        "_holds",
        "_reads_of_nodes",
        "_reads_of_pods",
        "_rules",
        "reads_reports",
    )

    def __init__(self, graph: RuleGraph, profile: str) -> None:
        target = f"SchedulingProfile/{profile}"
        self._decisions = {field: prepared(graph, f"{target}.{field}") for field in _FIELDS}
        estimates = self._decisions[_REQUEST]
        self._estimates = MemoizedDecision(estimates.value, estimates.facts)
        self._reads_of_pods = frozenset(path for root, path in estimates.facts if root == "pod")
        # Nodes share equal rules, rather than having their own each.
        of_nodes = frozenset().union(*(self._decisions[field].facts for field in _OF_NODES))
        self._rules = MemoizedDecision(self._new_rules, of_nodes)
        self._reads_of_nodes = frozenset(path for root, path in of_nodes if root == "node")
        self.reads_reports = any(not of_object(path) for root, path in of_nodes if root == "node")
        """Whether a report can change how load is counted."""
        self._holds = any(
            self._decisions[field].program is not None or (self._duration(field) or 0) > 0
            for field in (_AFTER_SCHEDULED, _AFTER_INITIALIZED)
        )

    def estimate(self, pod: Record) -> Amounts | None:
        """What a pod will probably use, by resource; None where the estimate fails or policy has none."""
        try:
            estimate: Amounts | None = self._estimates.value({"pod": pod})
        except CelError:
            return None
        return estimate

    def estimates_by(self, *paths: str) -> bool:
        """Whether the estimate reads one of these facts of the pod."""
        return not self._reads_of_pods.isdisjoint(("", *paths))

    def rules(self, node: Record) -> LoadRules:
        """How the load of a node with these facts is counted. What policy leaves open counts as nothing."""
        rules: LoadRules = self._rules.value({"node": node})
        return rules

    def counts_by(self, paths: Collection[str]) -> bool:
        """Whether how a node's load is counted may depend on one of these facts of it."""
        return "" in self._reads_of_nodes or not self._reads_of_nodes.isdisjoint(paths)

    def _new_rules(self, records: Records) -> LoadRules:
        node = records["node"]
        return LoadRules(
            tuple(self._value("load.resources", (), node=node)),
            frozenset(self._value("load.prodBands", (), node=node)),
            bool(self._value("load.prodIncludesSystem", False, node=node)),
            self._window("filter", node),
            self._window("score", node),
        )

    def assigned(self, pod: PodView, rules: LoadRules, now: int) -> AssignedPod:
        """A pod as the load of its node counts it. One that is only assumed was scheduled `now`; a reserve pod, which no node runs, uses
        nothing.
        """
        scheduled = _since(pod, CONDITION_SCHEDULED)
        placed_at = now if scheduled is None else scheduled
        estimate = None if is_reserve_pod(pod) else pod.estimate
        return AssignedPod(
            pod.pod.key,
            estimate if estimate is not None and any(estimate.values()) else None,
            pod.facts["band"] in rules.prod_bands,
            placed_at,
            self._held(pod, placed_at) if self._holds else None,
        )

    def _held(self, pod: PodView, placed_at: int) -> int | None:
        return estimate_end(
            placed_at,
            _since(pod, CONDITION_INITIALIZED),
            self._duration(_AFTER_SCHEDULED, pod=pod.facts),
            self._duration(_AFTER_INITIALIZED, pod=pod.facts),
        )

    def _window(self, use: str, node: Record) -> tuple[str, int]:
        aggregation = str(self._value(f"load.{use}.aggregation", LAST, node=node))
        return aggregation, self._duration(f"load.{use}.window", node=node) or 0

    def _duration(self, field: str, **roots: Record) -> int | None:
        value = self._value(field, None, **roots)
        return value.ns if isinstance(value, Duration) else None

    def _value(self, field: str, otherwise: Any, **roots: Record) -> Any:
        """A decision's value; `otherwise` where it has none, or where it fails for lack of facts."""
        try:
            value = self._decisions[field].value(roots)
        except CelError:
            return otherwise
        return otherwise if value is None else value


_REQUEST = "estimator.request"
_AFTER_SCHEDULED = "estimator.holdAfterScheduled"
_AFTER_INITIALIZED = "estimator.holdAfterInitialized"
_OF_NODES = (
    "load.resources",
    "load.prodBands",
    "load.prodIncludesSystem",
    "load.filter.aggregation",
    "load.filter.window",
    "load.score.aggregation",
    "load.score.window",
)
_FIELDS = (_REQUEST, _AFTER_SCHEDULED, _AFTER_INITIALIZED, *_OF_NODES)


def _since(pod: PodView, condition: str) -> int | None:
    """Since when a condition of a pod is true."""
    if not pod.pod.conditions:
        return None
    found = pod.pod.condition(condition)
    return found.since if found is not None and found.status == _TRUE else None


def report_of(metric: NodeMetric, rules: LoadRules, catalogue: Catalogue) -> LoadReport:
    """The parts of a metric that load needs. One that was never filled counts as of 1970."""
    return LoadReport(
        updated_at=metric.updated_at or 0,
        interval=metric.report_interval,
        node_usage=metric.node_usage,
        system_usage=metric.system_usage,
        windows=metric.aggregated,
        pods={
            one.key: ReportedPod(one.usage, catalogue.band_of_class(one.priority) in rules.prod_bands)
            for one in metric.pods
        },
    )


def new_load(
    rules: LoadRules, metric: NodeMetric, pods: Collection[AssignedPod], catalogue: Catalogue
) -> NodeLoad:
    """The load of a node with these pods."""
    load = NodeLoad(rules.resources, prod_includes_system=rules.includes_system)
    for pod in pods:
        load.add(pod)
    load.set_report(report_of(metric, rules, catalogue))
    return load


def loads_of(load: NodeLoad, rules: LoadRules) -> Loads:
    """The load as facts want it: now, of prod pods, over the windows of filter and score."""
    current = load.existing()
    return Loads(
        current,
        load.existing(prod=True),
        _over(load, rules.filter_window, current),
        _over(load, rules.score_window, current),
    )


def _over(load: NodeLoad, window: tuple[str, int], current: Mapping[str, int]) -> Mapping[str, int]:
    aggregation, duration = window
    return current if aggregation == LAST else load.existing(aggregation=aggregation, duration=duration)
