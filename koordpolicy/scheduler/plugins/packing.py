"""What pods take from nodes beyond the common measure: a strategy a resource, scarce kinds, amplified CPU."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from koordpolicy.algorithms.amplified import INSUFFICIENT, short_of_cpu, short_of_cpu_one
from koordpolicy.algorithms.fit_plus import STRATEGIES, FitPlus
from koordpolicy.algorithms.fit_score import Strategy
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.algorithms.scarce import kinds_of, scarce_score
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import KINDS, NodeView, kinds_in
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.distinct import distinct
from koordpolicy.model.protocol import CPU
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE, Facts, Plugin, request_of
from koordpolicy.scheduler.plugins.parameters import ParameterError, Parameters, texts, weights
from koordpolicy.scheduler.plugins.resources import FIT_FACTS, by_amounts
from koordpolicy.scheduler.plugins.verdicts import Refused, Verdicts, refuses_none

UNREADABLE: Final = "node(s) invalid CPU amplification ratio"

_AMPLIFIED: Final = (INSUFFICIENT, UNREADABLE)


def fit_plus_score(pod: PodView, nodes: NodeView, parameters: Parameters) -> Scores:
    """How well the pod fits by the strategy of each resource."""
    return parameters.once(_scorer).score_all(
        pod.pod,
        nodes.amounts("resources.allocatable"),
        nodes.amounts("resources.requested"),
        nodes.amounts("resources.nonzeroRequested"),
        nodes.count,
    )


def fit_plus_score_one(pod: PodView, parameters: Parameters) -> Callable[[Facts], int]:
    """The same of one node after the other."""
    return by_amounts(parameters.once(_scorer).score_one(pod.pod))


def scarce_avoidance(pod: PodView, nodes: NodeView, parameters: Parameters) -> "Scores | None":
    """How little of what would be left idle is scarce. Each set of kinds is looked at once."""
    scarce = texts(parameters, "resources")
    if not scarce:
        return None
    asked, codes = kinds_of(request_of(pod)), nodes.kinds()
    scores = np.zeros(nodes.count, np.int64)
    for code in distinct(codes):
        scores[codes == code] = scarce_score(kinds_in(nodes.text(int(code))), asked, scarce)
    return scores


def amplified_cpu(pod: PodView, nodes: NodeView, parameters: Parameters) -> Verdicts:
    """Nodes whose amplified CPU a pod does not fit into, and those whose ratio cannot be read."""
    asked, ratio = request_of(pod).get(CPU, 0), nodes.doubles("amplification.cpu", 1.0)
    if ratio is None or asked <= 0:
        return refuses_none(_AMPLIFIED, nodes.count)
    short = short_of_cpu(
        asked,
        binds=parameters.get("owns") is True,
        ratio=ratio,
        allocatable=nodes.amount("resources.allocatable", CPU),
        requested=nodes.amount("resources.requested", CPU),
        bound=nodes.numbers("ownedCPU"),
    )
    unreadable = ratio <= 0
    return Verdicts(_AMPLIFIED, np.stack((short, unreadable)), unreadable)


def amplified_cpu_one(
    pod: PodView, parameters: Parameters
) -> tuple[tuple[str, ...], Callable[[Facts], Refused | None]]:
    """The same of one node after the other."""
    asked = request_of(pod).get(CPU, 0)
    short = short_of_cpu_one(asked, binds=parameters.get("owns") is True)

    def refused(node: Facts) -> Refused | None:
        ratio = node.get("amplification.cpu")
        if ratio is None or asked <= 0:
            return None
        if ratio <= 0:
            return (False, True), True
        allocatable, requested = node["resources.allocatable"], node["resources.requested"]
        if short(ratio, allocatable.get(CPU, 0), requested.get(CPU, 0), node["ownedCPU"]):
            return (True, False), False
        return None

    return _AMPLIFIED, refused


def _scorer(parameters: Parameters) -> FitPlus:
    strategies = {resource: Strategy(strategy) for resource, strategy in _strategies(parameters).items()}
    return FitPlus(strategies, weights(parameters))


def _strategies(parameters: Parameters) -> Mapping[str, str]:
    value = parameters.get("strategies") or {}
    if not isinstance(value, Mapping):
        raise ParameterError("`strategies` is not a mapping of resources to strategies")
    for resource, strategy in value.items():
        if strategy not in STRATEGIES:
            known = " or ".join(f"`{one}`" for one in STRATEGIES)
            raise ParameterError(f"`strategies`: {resource} has `{strategy}`; it may be {known}")
    return value


NODE_RESOURCES_FIT_PLUS: Final = Plugin(
    score=fit_plus_score,
    score_one=fit_plus_score_one,
    node_facts=FIT_FACTS | {"resources.nonzeroRequested"},
    pod_facts=frozenset({"resources.request", "containers"}),
)

SCARCE_RESOURCE_AVOIDANCE: Final = Plugin(
    score=scarce_avoidance,
    node_facts=frozenset({KINDS}),
    pod_facts=frozenset({"resources.request"}),
)

AMPLIFIED_CPU: Final = Plugin(
    filter=amplified_cpu,
    filter_one=amplified_cpu_one,
    node_facts=FIT_FACTS | {"amplification.cpu", "ownedCPU"},
    pod_facts=frozenset({"resources.request"}),
    helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE},
)
