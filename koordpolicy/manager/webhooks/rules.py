"""The admission rules of one revision: what an object must satisfy, with all that it does not."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.records import submitted_pod_record
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import Operation
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.facts import TIMES
from koordpolicy.language.kinds.admission import ADMITTED
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.pod import namespace_facts
from koordpolicy.model.facts.quota import QuotaState, quota_facts
from koordpolicy.model.pod import read_pod
from koordpolicy.model.quota import Quota
from koordpolicy.model.reading import Json

KIND: Final = "AdmissionRule"
_NO_QUOTA: Final = quota_facts(Quota(""), QuotaState(known=False))
ENFORCE: Final = "enforce"
"""The enforcement that refuses, which holds too where none can be told."""
WARN: Final = "warn"
AUDIT: Final = "audit"


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that an object breaks. `reason` is the rule's symbol, its name when it has none.

    `enforcement` is `enforce` (refuse), `warn` or `audit`. `problem` is why the rule could not be decided, empty where it
    was: what may be passed over then only warns.
    """

    rule: str
    reason: str
    message: str
    enforcement: str
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


def rules_on(graph: RuleGraph, resource: str) -> tuple[str, ...]:
    """The rules about a resource (`pods`, `elasticquotas`), in their order."""
    about = [graph.about(KIND, subject) for subject in graph.subjects(KIND)]
    placed = [(one.value("order"), one.target) for one in about if one.value("resource") == resource]
    return tuple(target.partition("/")[2] for _, target in sorted(placed))


_ASKED: Final = ("enabled", "require", "enforcement")
_OF_THE_REQUEST: Final = frozenset({"user", "now", "operation"})


def judge_changes_alone(graph: RuleGraph) -> bool:
    """Whether rules on updates of pods read objects alone: then an update that changes nothing of the pod says nothing new."""
    for name in rules_on(graph, "pods"):
        if Operation.UPDATE in graph.about(KIND, name).value("operations"):
            for field in _ASKED:
                read = facts_of(graph.expression(f"{KIND}/{name}.{field}"))
                if any(root in _OF_THE_REQUEST for root, _ in read):
                    return False
    return True


class Rules:
    """All admission rules of a revision, in their order. Immutable."""

    def __init__(self, graph: RuleGraph) -> None:
        self._graph = graph
        self._names = {resource: rules_on(graph, resource) for resource in ADMITTED}
        self.judge_changes_alone = judge_changes_alone(graph)
        """See the function of that name."""

    def violations(
        self,
        operation: str,
        pod: Json | None,
        old: Json | None,
        namespace: Json,
        now: int,
        user: str = "",
        quota: Callable[[Mapping[str, Any]], Record] | None = None,
    ) -> tuple[Violation, ...]:
        """Every rule on pods that the request breaks, in order. `now` in nanoseconds since 1970.

        `pod` is None for DELETE, `old` for CREATE; `quota` gives the facts of the quota that the pod belongs to, from the
        other records by root. Raises ObjectError for malformed objects, and what `quota` raises.
        """
        roots: dict[str, Any] = {
            "namespaceObject": namespace_facts(namespace),
            "operation": operation,
            "now": TIMES.timestamp(now),
            "user": user,
        }
        for name, obj in (("pod", pod), ("oldPod", old)):
            if obj is not None:
                roots[name] = submitted_pod_record(read_pod(obj), self._graph.catalogue, TIMES)
        roots["quota"] = _NO_QUOTA if quota is None or pod is None else quota(roots)
        return self.broken("pods", operation, roots)

    def broken(self, resource: str, operation: str, roots: Mapping[str, Any]) -> tuple[Violation, ...]:
        """Every rule on a resource (`pods`, `elasticquotas`) that a request breaks, in order.

        `roots` are the records that rules on it may name. A rule that cannot be decided counts as broken: what was
        not checked is not admitted.
        """
        return tuple(self._broken(self._names[resource], operation, roots))

    def _broken(self, names: Iterable[str], operation: str, roots: Mapping[str, Any]) -> Iterable[Violation]:
        for name in names:
            about = self._graph.about(KIND, name, roots)
            # Whether it is in use cannot be told: then it is, and refuses unless it holds.
            if operation not in about.value("operations") or not about.value_or("enabled", True):
                continue
            problem = ""
            try:
                # None: no document of the rule matches, so that it does not concern this object.
                if about.value("require") is not False:
                    continue
            except CelError as error:
                problem = f"the rule cannot be decided: {error}"
            # A mistake in a text beside the verdict must not change the verdict.
            reason, message = about.value_or("reason", None), about.value_or("message", None)
            try:
                enforcement = str(about.value("enforcement"))
            except CelError as error:
                enforcement = ENFORCE  # a mistake must not make less of a refusal
                problem = problem or f"how the rule is enforced cannot be told: {error}"
            if problem and enforcement == ENFORCE and about.value("failurePolicy") == "Ignore":
                enforcement = WARN
            yield Violation(
                name,
                reason or name,
                problem or message or f"the rule `{name}` does not hold",
                enforcement,
                problem,
            )
