"""What a webhook is: one line of the table in `hooks.py`, and what its handler is given to work with."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionRequest, Handler, Hook, Operation
from koordpolicy.kube.known import KnownObjects
from koordpolicy.kube.port import Cluster
from koordpolicy.kube.resources import Resource
from koordpolicy.manager.webhooks.scope import Scope
from koordpolicy.runtime.policies.proposal import PolicyObjects

if TYPE_CHECKING:
    from koordpolicy.manager.webhooks.pod_spans import AdmissionSpans

T = TypeVar("T")

Observer = Callable[[AdmissionRequest, object], None]
"""Told of what a handler made of a request: of every `Mutation`, and of all violations, those included that refuse nothing."""


class Phase(StrEnum):
    """Whether a webhook changes objects, or only says yes and no once all changes are made."""

    MUTATING = "mutating"
    VALIDATING = "validating"


def unobserved(_request: AdmissionRequest, _seen: object) -> None:
    """Tells nobody."""


def nowhere(_: RuleGraph) -> frozenset[str]:
    """API servers decide nothing by themselves."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class QuotaWrites:
    """By what pods are counted in the objects of their quotas.

    With `together`, pods of one quota that come at the same time are counted in one write, which needs an event loop;
    without, each is counted at once.
    """

    cluster: Cluster
    together: bool = True


@dataclass(frozen=True, slots=True)
class WebhookContext:
    """What handlers work with. `now` is nanoseconds since 1970, `draw` gives random numbers from 0 to below 100.

    `objects` knows the objects of the resources that the table's lines say they read.
    """

    policies: Callable[[], RuleGraph]
    objects: KnownObjects
    now: Callable[[], int]
    draw: Callable[[], float]
    observe: Observer = unobserved
    policy_objects: PolicyObjects | None = None
    """The policies where they are objects of the cluster; None where they come from elsewhere."""
    quota_writes: QuotaWrites | None = None
    """None where no pods are counted."""
    slo_config: Callable[[], Mapping[str, str]] | None = None
    """The documents of a ConfigMap slo-controller-config that is followed; None where none is."""
    warned_elsewhere: Callable[[RuleGraph], frozenset[str]] = nowhere
    """Of which rules (`AdmissionRule/NAME`) of a revision API servers warn by themselves."""
    spans: "AdmissionSpans | None" = None
    """What makes spans of pods that are created; None where nobody traces."""
    _shared: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, name: Hashable, make: Callable[["WebhookContext"], T]) -> T:
        """What several handlers share, under a name of theirs: made when first asked for."""
        if name not in self._shared:
            self._shared[name] = make(self)
        return self._shared[name]  # type: ignore[no-any-return]  # a name stands for one thing


class ByRevision(Generic[T]):
    """What handlers prepare of a graph, anew only when the revision changed."""

    def __init__(self, policies: Callable[[], RuleGraph], prepare: Callable[[RuleGraph], T]) -> None:
        self._policies = policies
        self._prepare = prepare
        self._known: tuple[RuleGraph, T] | None = None

    def __call__(self) -> tuple[RuleGraph, T]:
        """The graph that decides now, and what was prepared of it."""
        graph, known = self._policies(), self._known
        if known is None or known[0] is not graph:
            known = self._known = (graph, self._prepare(graph))
        return known


def everything(_: RuleGraph) -> Scope:
    """All requests that the table's line names."""
    return Scope()


def always(_: WebhookContext) -> bool:
    """In every process."""
    return True


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook: which requests it is asked about, and who answers.

    `name` is its path behind a server, `reads` are the resources whose objects its handler looks up. `fail_open` lets
    requests pass that nobody answered, unless policy says otherwise. `scope` narrows what a server is asked about to what
    a revision's policies may touch, None where they touch nothing; `serves` says whether a process has what it takes.
    """

    name: str
    phase: Phase
    resources: tuple[Resource, ...]
    operations: tuple[Operation, ...]
    handler: Callable[[WebhookContext], Handler]
    subresources: tuple[str, ...] = ("",)
    reads: tuple[Resource, ...] = ()
    fail_open: bool = False
    scope: Callable[[RuleGraph], Scope | None] = everything
    serves: Callable[[WebhookContext], bool] = always
    scope_here: Callable[[WebhookContext, RuleGraph, frozenset[str]], Scope | None] | None = None
    """Both scopes in a process, where more is asked about than policies say; None where those are the others."""
    scope_beside: Callable[[RuleGraph, frozenset[str]], Scope | None] | None = None
    """The scope where API servers decide these targets by themselves; None where that changes nothing."""

    @property
    def path(self) -> str:
        """Where a server serves it."""
        return f"/{self.name}"

    def here(self, context: WebhookContext) -> "Webhook":
        """It in a process, with the scope that it has there."""
        asked = self.scope_here
        if asked is None:
            return self
        return replace(
            self,
            scope=lambda graph: asked(context, graph, frozenset()),
            scope_beside=lambda graph, native: asked(context, graph, native),
        )

    def hook(self, context: WebhookContext) -> Hook:
        """It at work."""
        return Hook(
            self.name,
            self.handler(context),
            self.resources,
            self.operations,
            self.subresources,
            self.fail_open,
        )
