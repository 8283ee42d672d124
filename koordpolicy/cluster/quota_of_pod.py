"""Which quota a pod belongs to, as policy says: webhooks and schedulers ask the same."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.quota_tree import QuotaTree
from koordpolicy.cluster.pods import PodView
from koordpolicy.graph import RuleGraph
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.quota import QuotaState, quota_facts
from koordpolicy.model.quota import Quota

KIND: Final = "QuotaTree"


def says_anything(graph: RuleGraph) -> bool:
    """Whether any document speaks of quotas."""
    return bool(graph.subjects(KIND))


def quota_of_pod(
    graph: RuleGraph, tree: QuotaTree, roots: Mapping[str, Any], namespace: str
) -> tuple[str, Quota | None]:
    """Name of the quota that a pod belongs to by policy, and the quota where there is one.

    `roots` has `pod`, `namespaceObject` and what else a request has. Without a policy that says so, a pod belongs to none.
    Raises `CelError`.
    """
    if not says_anything(graph):
        return "", None
    about = graph.about(KIND, "", {**roots, "namespaceQuotas": led_to(tree, namespace)})
    name = str(about.value("quotaOfPod") or "")
    otherwise = None if tree.get(name) is not None else about.value("fallback")
    name = name if otherwise is None else str(otherwise)
    return name, tree.get(name)


def quota_record(name: str, quota: Quota | None) -> Record:
    """The facts of the quota that a pod belongs to."""
    return quota_facts(quota or Quota(name), QuotaState(known=quota is not None))


def led_to(tree: QuotaTree, namespace: str) -> Record:
    """The facts of the quotas that a namespace leads to."""
    named, bound = tree.led_to(namespace)
    return {"named": named, "bound": bound}


def same_terms(one: Quota, other: Quota) -> bool:
    """Whether nothing changed of what is asked of a quota; what is written of its status is not."""
    return (one.parent, one.tree, one.is_root, one.lends, one.ignores_default_tree, one.namespaces, one.max, one.min) == (
        other.parent, other.tree, other.is_root, other.lends, other.ignores_default_tree, other.namespaces, other.max, other.min
    ) and (one.shared_weight, one.total, one.labels) == (other.shared_weight, other.total, other.labels)  # fmt: skip


def same_claim(one: PodView, other: PodView) -> bool:
    """Whether two states of a pod count the same."""
    return one.pod is other.pod or (
        one.pod.uid == other.pod.uid
        and one.kind == other.kind
        and one.pod.annotations == other.pod.annotations
        and one.priority == other.priority
        and one.facts["resources.request"] == other.facts["resources.request"]
    )
