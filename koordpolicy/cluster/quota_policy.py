"""What policy says of quotas to whoever keeps them: their terms, whose a pod is, what it counts for."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from koordpolicy.algorithms.quota_sums import QuotaTerms
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.prepared import PreparedDecision, prepared
from koordpolicy.cluster.quota_of_pod import KIND, quota_record, says_anything
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Duration
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import ROOT_QUOTA
from koordpolicy.model.quota import Quota
from koordpolicy.model.reading import Amounts

LOG: Final = logging.getLogger(__name__)

Facts = Mapping[str, Any]

_ABOUT: Final = ("pod", "namespaceObject", "now")
_ASKING: Final = ("pod", "namespaceObject", "namespaceQuotas", "now")
"""The records of what is asked of each pod. They are handed over by position: making a mapping of them takes as long as the answer."""

_RUNTIME: Final = "Runtime"
_GONE: Final = "Gone"
_DELETED: Final = "Deleted"


@dataclass(frozen=True, slots=True)
class KeptQuota:
    """A quota as policy has it kept: the id of its tree, its terms.

    `by_runtime` says whether its pods may have its runtime (else its max), `by_parents` whether they have to be within the quotas
    above as well, `takes_pods` whether it may have any, `revoked` whether pods are evicted where they have more, `reported` whether its object is written.
    """

    quota: Quota
    tree: str
    terms: QuotaTerms
    by_runtime: bool = True
    by_parents: bool = False
    revoked: bool = False
    reported: bool = False
    takes_pods: bool = True


class QuotaPolicy:
    """The QuotaTree documents of one revision."""

    __slots__ = (
        "_enabled",
        "_enabled_for_all",
        "_fallback",
        "_overhead",
        "_preemptible",
        "_quota_of_pod",
        "_terminating",
        "graph",
        "reads_time",
        "speaks",
    )

    def __init__(self, graph: RuleGraph) -> None:
        self.graph = graph
        self.speaks: Final = says_anything(graph)
        """Whether any document speaks of quotas."""
        self._quota_of_pod, self._fallback = (
            prepared(graph, f"{KIND}.{field}") for field in ("quotaOfPod", "fallback")
        )
        self._enabled = prepared(graph, f"{KIND}.scheduling.enabled")
        self._enabled_for_all = self._enabled.program is None and self._enabled.constant is not False
        self._overhead = prepared(graph, f"{KIND}.scheduling.overhead")
        self._terminating = prepared(graph, f"{KIND}.scheduling.terminating")
        self._preemptible = prepared(graph, f"{KIND}.scheduling.preemptible")
        asked = (
            self._quota_of_pod,
            self._fallback,
            self._enabled,
            self._overhead,
            self._terminating,
            self._preemptible,
        )
        for one in asked:
            assert one.roots == (_ASKING if one is self._quota_of_pod else _ABOUT)
        self.reads_time: Final = any(root == "now" for one in asked for root, _ in one.facts)
        """Whether it depends on the time where a pod belongs."""

    def given(self) -> list[Quota]:
        """The quotas that policy gives without an object."""
        about = self.graph.about(KIND, "")
        found = []
        for item in self.graph.items(KIND, "", "quotas"):
            at = f"quotas[{item.name}]"
            if not about.value(f"{at}.enabled"):
                continue
            found.append(
                Quota(
                    item.name,
                    parent=about.value(f"{at}.parent") or ROOT_QUOTA,
                    tree=about.value(f"{at}.tree"),
                    is_parent=True,
                    lends=about.value(f"{at}.lends"),
                    namespaces=tuple(about.value(f"{at}.namespaces")),
                    max=about.value(f"{at}.max"),
                    min=about.value(f"{at}.min"),
                    shared_weight=about.value(f"{at}.weight"),
                )
            )
        return found

    def kept(self, quota: Quota) -> KeptQuota:
        """A quota as it is kept. What policy cannot say of it is as its object says."""
        about = self.graph.about(KIND, "", {"quota": quota_record(quota.name, quota)})

        def asked(field: str, otherwise: Any) -> Any:
            try:
                found = about.value(field)
            except CelError as problem:
                LOG.warning("quota %s: %s.%s: %s", quota.name, KIND, field, problem)
                return otherwise
            return otherwise if found is None else found

        terms = QuotaTerms(
            quota.name,
            quota.parent,
            asked("sharing.min", quota.min),
            asked("sharing.max", quota.max),
            asked("sharing.weight", quota.max),
            asked("sharing.lends", quota.lends),
            asked("sharing.scales", otherwise=True),
            asked("sharing.guarantees", otherwise=False),
        )
        return KeptQuota(
            quota,
            asked("sharing.tree", ""),
            terms,
            asked("scheduling.limit", _RUNTIME) == _RUNTIME,
            asked("scheduling.parents", otherwise=False),
            asked("revocation.enabled", otherwise=False),
            asked("reporting.enabled", otherwise=False),
            not quota.is_parent or asked("scheduling.ofParents", otherwise=True),
        )

    def holds(self, pod: Facts, namespace: Facts, now: Any) -> bool:
        """Whether quotas are kept for a pod at all. Raises CelError."""
        if self._enabled_for_all:
            return self.speaks
        return self.speaks and _said(self._enabled, pod, namespace, now) is not False

    def asked_by(self, pod: Facts, namespace: Facts, leads: Facts, now: Any) -> str:
        """The quota that a pod asks for, which may not be there; empty for none. Raises CelError."""
        if not ((self._enabled_for_all and self.speaks) or self.holds(pod, namespace, now)):
            return ""
        asks = self._quota_of_pod
        found = asks.constant if asks.program is None else asks.program.call(pod, namespace, leads, now)
        return str(found or "")

    def instead_of(self, name: str, pod: Facts, namespace: Facts, now: Any) -> str:
        """The quota that a pod belongs to where the one that it asks for is not there. Raises CelError."""
        otherwise = _said(self._fallback, pod, namespace, now)
        return name if otherwise is None else str(otherwise)

    def counts(self, pod: Pod, facts: Facts, namespace: Facts, now: Any, at: int) -> bool:
        """Whether a pod counts for its quota that is on its way out, in nanoseconds since 1970. Raises CelError."""
        until = _said(self._terminating, facts, namespace, now)
        # The API server sets the time of deletion to when the grace period ends.
        return until == _GONE or (until != _DELETED and at <= (pod.deleted_at or 0))

    def preemptible(self, pod: Facts, namespace: Facts, now: Any) -> bool:
        """Whether a pod may have to go for others. Raises CelError."""
        return _said(self._preemptible, pod, namespace, now) is not False

    def whole_request(self, view: PodView, namespace: Facts, now: Any) -> Amounts:
        """What a pod counts for, of all resources. Raises CelError."""
        request: Amounts = view.facts["resources.request"]  # type: ignore[assignment]  # the fact's type says so
        overhead = view.pod.overhead
        if overhead and _said(self._overhead, view.facts, namespace, now) is False:
            return {name: number - overhead.get(name, 0) for name, number in request.items()}
        return request

    @property
    def creates_builtins(self) -> bool:
        """Whether objects of the quotas that there always are are created where they are absent."""
        return self.speaks and self.graph.about(KIND, "").value_or("builtin.created", False) is True

    @property
    def builtin_namespace(self) -> str:
        """The namespace of these objects."""
        return str(self.graph.about(KIND, "").value_or("builtin.namespace", "") or "default")

    def nanoseconds(self, field: str) -> int:
        """A duration of a revision."""
        found = self.graph.about(KIND, "").value_or(field, None)
        return found.ns if isinstance(found, Duration) else 0


def _said(decision: PreparedDecision, pod: Facts, namespace: Facts, now: Any) -> Any:
    return decision.constant if decision.program is None else decision.program.call(pod, namespace, now)


def builtin(name: str, known: Quota | None) -> Quota:
    """A quota that there always is: as its object says, but outside any tree."""
    return replace(known, parent=ROOT_QUOTA, tree="") if known is not None else Quota(name)
