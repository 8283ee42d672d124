"""What pods take from nodes: room, how much would be left, and how evenly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import numpy as np

from koordpolicy.algorithms import balanced
from koordpolicy.algorithms.columns import Columns
from koordpolicy.algorithms.fit import checked_resources, fit_all, fit_one, shortage_reason
from koordpolicy.algorithms.fit_score import FitScore, NodeScore, Strategy
from koordpolicy.algorithms.normalize import Scores
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.model.protocol import EPHEMERAL_STORAGE, MEMORY, PODS
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import Amounts
from koordpolicy.scheduler.plugins.base import NODES_COME_AND_CHANGE, Facts, Plugin, RefusedNodes, request_of
from koordpolicy.scheduler.plugins.parameters import ParameterError, Parameters, text, texts, weights
from koordpolicy.scheduler.plugins.verdicts import Refused, Verdicts, refused_of, refuses_none


def resources_fit(pod: PodView, nodes: NodeView, parameters: Parameters) -> Verdicts:
    """Nodes without room for what the pod requests."""
    few = nodes.few
    if few is not None:
        reasons, ask = resources_fit_one(pod, parameters)
        return refused_of(reasons, [ask(node) for node in few])
    found = fit_all(
        request_of(pod),
        nodes.amounts("resources.allocatable"),
        nodes.amounts("resources.requested"),
        nodes.counts("requested.pods"),
        *parameters.once(_ignored),
    )
    reasons = _reasons(found.resources)
    if found.short is None or found.unresolvable is None:
        return refuses_none(reasons, nodes.count)
    return Verdicts(reasons, found.short, found.unresolvable)


def resources_fit_one(
    pod: PodView, parameters: Parameters
) -> tuple[tuple[str, ...], Callable[[Facts], Refused | None]]:
    """The same of one node after the other."""
    resources, lacking = fit_one(request_of(pod), *parameters.once(_ignored))

    def refused(node: Facts) -> Refused | None:
        return lacking(node["resources.allocatable"], node["resources.requested"], node["requested.pods"])

    return _reasons(resources), refused


def _ignored(parameters: Parameters) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return texts(parameters, "ignoredResources"), texts(parameters, "ignoredResourceGroups")


@lru_cache(maxsize=1024)
def _reasons(resources: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(shortage_reason, resources))


def requests_of(pod: PodView, parameters: Parameters) -> dict[str, int]:
    """What `resources_fit` compares with what is free."""
    request = request_of(pod)
    checked = checked_resources(request, *parameters.once(_ignored))
    return {PODS: 1, **{name: request[name] for name in checked}}


def fit_score(pod: PodView, nodes: NodeView, parameters: Parameters) -> Scores:
    """How much of each node would be left, or taken, by strategy."""
    few = nodes.few
    if few is not None:
        score = fit_score_one(pod, parameters)
        return np.array([score(node) for node in few], np.int64)
    return parameters.once(_scorer).score_all(
        pod.plain_request,
        pod.plain_nonzero_request,
        nodes.amounts("resources.allocatable"),
        nodes.amounts("resources.requested"),
        nodes.amounts("resources.nonzeroRequested"),
        nodes.count,
    )


def fit_score_one(pod: PodView, parameters: Parameters) -> Callable[[Facts], int]:
    """The same of one node after the other."""
    return by_amounts(parameters.once(_scorer).score_one(pod.plain_request, pod.plain_nonzero_request))


def by_amounts(score: NodeScore) -> Callable[[Facts], int]:
    """The score of a node of its facts."""

    def of_node(node: Facts) -> int:
        return score(
            node["resources.allocatable"], node["resources.requested"], node["resources.nonzeroRequested"]
        )

    return of_node


def balanced_score(pod: PodView, nodes: NodeView, parameters: Parameters) -> "Scores | None":
    """How evenly each node's resources would be used."""
    resources = _balanced(pod, parameters)
    if resources is None:
        return None
    few = nodes.few
    if few is not None:
        score = _balance_of_node(pod, resources, parameters)
        return np.array([score(node) for node in few], np.int64)
    allocatable, requested = nodes.amounts("resources.allocatable"), nodes.amounts("resources.requested")
    return parameters.once(_variant)[1](resources, request_of(pod), allocatable, requested, nodes.count)


def balanced_score_one(pod: PodView, parameters: Parameters) -> "Callable[[Facts], int] | None":
    """The same of one node after the other."""
    resources = _balanced(pod, parameters)
    return None if resources is None else _balance_of_node(pod, resources, parameters)


def _balanced(pod: PodView, parameters: Parameters) -> tuple[str, ...] | None:
    """The resources that are to be even; None when the pod requests none of them."""
    request, resources = request_of(pod), parameters.once(_resources)
    return resources if balanced.takes_part({name: request.get(name, 0) for name in resources}) else None


def _resources(parameters: Parameters) -> tuple[str, ...]:
    return texts(parameters, "resources")


def _balance_of_node(
    pod: PodView, resources: tuple[str, ...], parameters: Parameters
) -> Callable[[Facts], int]:
    balance = parameters.once(_variant)[0](resources, request_of(pod))

    def of_node(node: Facts) -> int:
        return balance(node["resources.allocatable"], node["resources.requested"])

    return of_node


def _variant(parameters: Parameters) -> "tuple[_BalanceOne, _BalanceAll]":
    variant = text(parameters, "variant", "classic")
    found = _VARIANTS.get(variant)
    if found is None:
        raise ParameterError(
            f"`variant` is `{variant}`; it may be " + " or ".join(f"`{one}`" for one in _VARIANTS)
        )
    return found


_BalanceOne = Callable[[Sequence[str], Amounts], balanced.Balance]
_BalanceAll = Callable[[Sequence[str], Amounts, Columns, Columns, int], balanced.Shares]

_VARIANTS: Final[Mapping[str, tuple[_BalanceOne, _BalanceAll]]] = MappingProxyType(
    {
        "classic": (balanced.classic_one, balanced.classic_all),
        "delta": (balanced.delta_one, balanced.delta_all),
    }
)
"""Each for one node after the other and for all at once."""


def _scorer(parameters: Parameters) -> FitScore:
    strategy, shape = text(parameters, "strategy", "LeastAllocated"), parameters.get("shape") or {}
    try:
        named = Strategy(strategy)
    except ValueError:
        known = " or ".join(f"`{one}`" for one in Strategy)
        raise ParameterError(f"`strategy` is `{strategy}`; it may be {known}") from None
    counted = tuple(weights(parameters).items())
    if named is not Strategy.REQUESTED_TO_CAPACITY_RATIO:
        return FitScore.of(named, counted)
    try:
        points = sorted((int(use.removesuffix("%")), score) for use, score in shape.items())
        return FitScore.of(named, counted, points)
    except (ValueError, AttributeError) as problem:
        raise ParameterError(f"`shape`: {problem}") from None


# --- advice --------------------------------------------------------------------------------------

_MIB: Final = 2**20
_HAS: Final = "resources.allocatable"
_USED: Final = "resources.requested"


def less(pod: PodView, parameters: Parameters, refused: RefusedNodes) -> Iterator[str]:
    """How much too much the pod requests on the node that lacks least, by shares of what it requests.

    Nodes that would not do if they were empty do not count; where all are too small, the largest is told.
    """
    wanted = {name: amount for name, amount in requests_of(pod, parameters).items() if amount > 0}
    offered = NodeView(refused.table, refused.rows)
    large = np.ones(offered.count, np.bool_)
    for name, amount in wanted.items():
        large &= offered.amount(_HAS, name) >= amount
    if not large.any():
        yield from _too_large(wanted, offered, NodeView(refused.table))
        return
    table, rows = refused.table, refused.rows[large]
    nodes = NodeView(table, rows)
    missing = {
        name: np.maximum(amount - (nodes.amount(_HAS, name) - nodes.amount(_USED, name)), 0)
        for name, amount in wanted.items()
    }
    shares = sum(lacking / wanted[name] for name, lacking in missing.items())
    at = int(np.argmin(shares))
    lacking = {name: int(column[at]) for name, column in missing.items() if column[at] > 0}
    words = ", ".join(
        f"{amount} more pods" if name == PODS else f"{_rounded(name, amount)} more {name}"
        for name, amount in lacking.items()
    )
    equal = int(np.count_nonzero(np.all([column <= column[at] for column in missing.values()], axis=0)))
    others = "" if equal == 1 else f", and {equal - 1} more"
    yield f"nearest is {table.name(int(rows[at]))}{others}, where {words} would have to be free"


def _too_large(wanted: Amounts, refused: NodeView, everywhere: NodeView) -> Iterator[str]:
    """What no node that is refused has even when it is empty."""
    told = False
    for name, amount in wanted.items():
        largest = int(refused.amount(_HAS, name).max())
        if largest < amount:
            told = True
            whole = int(everywhere.amount(_HAS, name).max()) < amount
            which = "no node" if whole else "none of these"
            if largest > 0:
                yield f"{which} is that large: the largest offers {_rounded(name, largest)} {name}"
            else:
                yield f"{which} offers {name}"
    if not told:
        yield "none of these is large enough for all that it requests"


def _rounded(resource: str, amount: int) -> str:
    """An amount as people write it; bytes up to the next MiB."""
    many_bytes = amount >= _MIB and (resource in (MEMORY, EPHEMERAL_STORAGE) or resource.endswith("memory"))
    return f"{-(-amount // _MIB)}Mi" if many_bytes else amount_text(resource, amount)


# --- the plugins ---------------------------------------------------------------------------------

FIT_FACTS: Final = frozenset({_HAS, _USED, "requested.pods"})

NODE_RESOURCES_FIT: Final = Plugin(
    filter=resources_fit,
    score=fit_score,
    node_facts=FIT_FACTS | {"resources.nonzeroRequested"},
    pod_facts=frozenset({"resources.request", "resources.nonzeroRequest"}),
    helped_by=NODES_COME_AND_CHANGE | {Event.POD_GONE},
    requests=requests_of,
    filter_one=resources_fit_one,
    score_one=fit_score_one,
    advice=less,
    of_kubernetes=True,
)

NODE_RESOURCES_BALANCED_ALLOCATION: Final = Plugin(
    score=balanced_score,
    score_one=balanced_score_one,
    node_facts=FIT_FACTS,
    pod_facts=frozenset({"resources.request"}),
    of_kubernetes=True,
)
