"""The admission rules of one revision: what a pod must satisfy, with all that it does not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.records import pod_record
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts.pod import namespace_facts
from koordpolicy.model.pod import read_pod
from koordpolicy.model.reading import Json

_KIND: Final = "AdmissionRule"


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a pod breaks. `reason` is the rule's symbol, its name when it has none.

    `enforcement` is `enforce` (refuse), `warn` or `audit`.
    """

    rule: str
    reason: str
    message: str
    enforcement: str


class Rules:
    """All admission rules of a revision, in their order. Immutable."""

    def __init__(self, graph: RuleGraph) -> None:
        self._graph = graph
        placed = [(graph.value(f"{_KIND}/{subject}.order"), subject) for subject in graph.subjects(_KIND)]
        self._names = tuple(subject for _, subject in sorted(placed))

    def violations(
        self, operation: str, pod: Json | None, old: Json | None, namespace: Json, now: int
    ) -> tuple[Violation, ...]:
        """Every rule that the request breaks, in order. `now` in nanoseconds since 1970.

        `pod` is None for DELETE, `old` for CREATE. A rule that cannot be decided counts as broken: what was
        not checked is not admitted. Raises ObjectError for malformed objects.
        """
        roots: dict[str, Any] = {
            "namespaceObject": namespace_facts(namespace),
            "operation": operation,
            "now": TIMES.timestamp(now),
        }
        for name, obj in (("pod", pod), ("oldPod", old)):
            if obj is not None:
                roots[name] = pod_record(read_pod(obj), self._graph.catalogue, TIMES)
        return tuple(self._broken(operation, roots))

    def _broken(self, operation: str, roots: Mapping[str, Any]) -> Iterable[Violation]:
        for name in self._names:
            if operation not in self._ask(name, "operations", {}) or not self._ask(name, "enabled", roots):
                continue
            problem = ""
            try:
                # None: no document of the rule matches, so that it does not concern this pod.
                if self._ask(name, "require", roots) is not False:
                    continue
            except CelError as error:
                problem = f"the rule cannot be decided: {error}"
            yield Violation(
                name,
                self._text(name, "reason", roots) or name,
                problem or self._text(name, "message", roots) or f"the rule `{name}` does not hold",
                self._ask(name, "enforcement", roots),
            )

    def _ask(self, rule: str, field: str, roots: Mapping[str, Any]) -> Any:
        return self._graph.value(f"{_KIND}/{rule}.{field}", **roots)

    def _text(self, rule: str, field: str, roots: Mapping[str, Any]) -> str:
        """A text beside the verdict; a mistake in it must not change the verdict."""
        try:
            return self._ask(rule, field, roots) or ""
        except CelError:
            return ""
