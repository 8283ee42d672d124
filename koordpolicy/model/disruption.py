"""PodDisruptionBudgets as the scheduler reads them: whom they cover, and how many may go now."""

from dataclasses import dataclass, field

from koordpolicy.model.labels import LabelSelector, read_selector
from koordpolicy.model.pod import Pod
from koordpolicy.model.reading import Json, integer, mapping, optional_mapping, text


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget. `selector` is None where it covers nothing; `disrupted` are pods that count as gone already."""

    namespace: str
    name: str
    selector: LabelSelector | None = field(default=None, compare=False)
    allowed: int = field(default=0, compare=False)
    disrupted: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    def covers(self, pod: Pod) -> bool:
        """Whether evicting the pod uses the budget up."""
        return (
            self.selector is not None
            and pod.namespace == self.namespace
            and bool(pod.labels)
            and pod.name not in self.disrupted
            and self.selector.matches(pod.labels)
        )


def read_budget(obj: Json) -> Budget:
    """A budget from its JSON. One whose selector is absent or empty covers nothing. Raises ObjectError."""
    metadata = mapping(obj, "metadata")
    written = optional_mapping(mapping(obj, "spec"), "selector", "spec")
    selector = None if written is None else read_selector(written, "spec.selector")
    status = mapping(obj, "status")
    return Budget(
        text(metadata, "namespace", "metadata") or "default",
        text(metadata, "name", "metadata"),
        selector if selector is not None and selector.requirements else None,
        integer(status, "disruptionsAllowed", "status") or 0,
        frozenset(mapping(status, "disruptedPods", "status")),
    )
