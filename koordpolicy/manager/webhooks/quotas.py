"""Elastic quotas at admission: what a new one gets, what one must satisfy among the others, whose a pod is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.algorithms.quota_tree import QuotaTree
from koordpolicy.cluster.quota_of_pod import KIND, says_anything
from koordpolicy.graph import About, RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.webhooks.rules import Rules, Violation
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.pod import namespace_facts
from koordpolicy.model.facts.quota import QuotaState, quota_facts, quota_group_facts
from koordpolicy.model.protocol import QUOTA_PARENT, QUOTA_SHARED_WEIGHT, QUOTA_TREE_ID, ROOT_QUOTA
from koordpolicy.model.quota import Quota, amounts_text, read_quota
from koordpolicy.model.reading import Json, embedded_object, mapping, texts

RESOURCE: Final = "elasticquotas"
_UPDATE: Final = "UPDATE"
_DELETE: Final = "DELETE"


@dataclass(frozen=True, slots=True)
class QuotaPods:
    """What the cluster says of pods: names of those that bear a quota's label, whether a namespace has any pods."""

    labelled: Callable[[str], Sequence[str]]
    in_namespace: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class QuotaRequest:
    """Who asks for what, and when: `now` in nanoseconds since 1970."""

    operation: str
    now: int
    user: str = ""
    namespace: Json = field(default_factory=dict)


def keeps_to_nodes(graph: RuleGraph) -> bool:
    """Whether policy may keep any pod to the nodes of its tree."""
    return graph.once(
        "nodes of quota trees",
        lambda: says_anything(graph) and bool(graph.about(KIND, "").value_or("nodeAffinity", True)),
    )


def with_defaults(quota: Json, tree: QuotaTree, graph: RuleGraph, request: QuotaRequest) -> Json:
    """A new quota with what policy gives it; the same object where that is nothing. Raises ObjectError, `CelError`."""
    read = read_quota(quota)
    if read.name == ROOT_QUOTA or not says_anything(graph):
        return quota
    metadata = mapping(quota, "metadata")
    parent = _defaults(read, read.parent, tree, graph, request).value("defaults.parent") or read.parent
    about = _defaults(read, parent, tree, graph, request)
    labels, annotations = dict(read.labels), dict(read.annotations)
    if parent != labels.get(QUOTA_PARENT):
        labels[QUOTA_PARENT] = parent
    found = about.value("defaults.tree")
    if found and found != read.tree:
        labels[QUOTA_TREE_ID] = found
    weight = about.value("defaults.sharedWeight")
    if weight is not None and weight != read.shared_weight:
        annotations[QUOTA_SHARED_WEIGHT] = amounts_text(weight, _written(quota, read))
    named = {"labels": labels, "annotations": annotations}
    if named == {"labels": dict(read.labels), "annotations": dict(read.annotations)}:
        return quota
    return {**quota, "metadata": {**metadata, **{key: value for key, value in named.items() if value}}}


class QuotaRules:
    """The rules on quotas of one revision."""

    def __init__(self, graph: RuleGraph, rules: Rules) -> None:
        self._graph = graph
        self._rules = rules

    def violations(
        self, quota: Quota, old: Quota | None, tree: QuotaTree, pods: QuotaPods, request: QuotaRequest
    ) -> tuple[Violation, ...] | None:
        """Every rule that a request breaks, in order; None where policy exempts it, so that nothing changes.

        `quota` is what shall be, or what goes; `old` what was before, None for CREATE. Raises `CelError` where it cannot
        be told whether the request is exempt.
        """
        roots = _roots(quota, old, tree, pods, request)
        if says_anything(self._graph) and self._graph.about(KIND, "", roots).value("exempt"):
            return None
        return self._rules.broken(RESOURCE, request.operation, roots)


def _defaults(quota: Quota, parent: str, tree: QuotaTree, graph: RuleGraph, request: QuotaRequest) -> About:
    roots = {
        "quota": quota_facts(quota, QuotaState(known=tree.get(quota.name) is not None)),
        "parentQuota": _above(parent, tree),
        **_of_request(request),
    }
    return graph.about(KIND, "", roots)


def _above(name: str, tree: QuotaTree) -> Record:
    found = tree.get(name)
    return quota_facts(found or Quota(name), QuotaState(known=found is not None))


def _of_request(request: QuotaRequest) -> dict[str, Any]:
    return {"operation": request.operation, "user": request.user, "now": TIMES.timestamp(request.now)}


def _roots(
    quota: Quota, old: Quota | None, tree: QuotaTree, pods: QuotaPods, request: QuotaRequest
) -> dict[str, Any]:
    labelled = pods.labelled(quota.name)
    state = QuotaState(
        known=tree.get(quota.name) is not None,
        foreign=tree.bound_elsewhere(quota),
        pods=labelled,
        bound=bool(labelled) or any(map(pods.in_namespace, (quota.name, *quota.namespaces))),
        guarantee_fits=tree.guarantee_fits(quota),
    )
    roots: dict[str, Any] = {
        "quota": quota_facts(quota, state),
        "parentQuota": _above(quota.parent, tree),
        "siblingQuotas": quota_group_facts(tree.siblings(quota)),
        "childQuotas": quota_group_facts(tree.children(quota.name)),
        "namespaceObject": namespace_facts(request.namespace),
        **_of_request(request),
    }
    if old is not None:
        roots["oldQuota"] = quota_facts(old, state)
    return roots


def _written(quota: Json, read: Quota) -> dict[str, object]:
    """How the object writes amounts itself: a weight that equals one of them is written the same."""
    source = texts(mapping(quota, "metadata"), "annotations", "metadata").get(QUOTA_SHARED_WEIGHT)
    own = embedded_object(source, QUOTA_SHARED_WEIGHT) if source else {}
    return {**mapping(mapping(quota, "spec"), "max", "spec"), **own}
