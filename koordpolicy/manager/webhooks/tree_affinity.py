"""The nodes of quota trees: those that a pod is kept to, by the quota that it belongs to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.algorithms.quota_tree import QuotaTree
from koordpolicy.algorithms.required_affinity import as_expressions, with_node_requirements
from koordpolicy.cluster.quota_of_pod import KIND, quota_of_pod, quota_record
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.known import KnownObjects
from koordpolicy.kube.mirror import Key, ObjectChange
from koordpolicy.kube.resources import ELASTIC_QUOTA_PROFILES
from koordpolicy.manager.webhooks.quota_view import view_of
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.labels import LabelSelector
from koordpolicy.model.quota_profile import read_quota_profile
from koordpolicy.model.reading import Json


class TreeSelectors:
    """Which nodes belong to which tree, by the ElasticQuotaProfiles that bear its id: the first by namespace and name."""

    def __init__(self, objects: KnownObjects) -> None:
        self._trees: dict[str, dict[Key, LabelSelector | None]] = {}
        objects.follow(ELASTIC_QUOTA_PROFILES, self._changed)

    def of_tree(self, tree: str) -> LabelSelector | None:
        """The selector of a tree's nodes; None where no profile says any."""
        known = self._trees.get(tree)
        return known[min(known)] if known else None

    def _changed(self, change: ObjectChange) -> None:
        for tree, known in tuple(self._trees.items()):
            known.pop(change.key, None)
            if not known:
                del self._trees[tree]
        if change.new is not None:
            profile = read_quota_profile(change.new)
            if profile.tree:
                self._trees.setdefault(profile.tree, {})[change.key] = profile.selector


@dataclass(frozen=True, slots=True)
class QuotaTreeNodes:
    """What keeps pods to the nodes of their trees: the quotas that there are, and who says which nodes are whose."""

    quotas: Callable[[], QuotaTree]
    selectors: TreeSelectors
    user: str = field(default="", kw_only=True)

    def kept(self, pod: Json, graph: RuleGraph, roots: Mapping[str, Any], namespace: str) -> tuple[Json, str]:
        """The pod, kept to the nodes of its tree where policy wants it, and the id of that tree, empty for none.

        `roots` has the records of the pod as it is by now. Raises ObjectError, `CelError`.
        """
        roots = {**roots, "user": self.user}
        name, quota = quota_of_pod(graph, self.quotas(), roots, namespace)
        if quota is None or not quota.tree:
            return pod, ""
        selector = self.selectors.of_tree(quota.tree)
        if selector is None:
            return pod, ""
        about = graph.about(KIND, "", {**roots, "quota": quota_record(name, quota)})
        if not about.value("nodeAffinity"):
            return pod, ""
        return with_node_requirements(pod, as_expressions(selector)), quota.tree


def tree_nodes(context: WebhookContext) -> Callable[[str], QuotaTreeNodes]:
    """By the user who asks; what is known of trees is shared by the handlers of one context."""
    view, selectors = view_of(context), context.once(TreeSelectors, lambda one: TreeSelectors(one.objects))
    return lambda user: QuotaTreeNodes(lambda: view.tree(context.now()), selectors, user=user)
