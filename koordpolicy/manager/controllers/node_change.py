"""What one kind of policies wants to be another on a node."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.algorithms.node_record import NodeSight
from koordpolicy.graph import RuleGraph
from koordpolicy.model.facts import Record
from koordpolicy.model.quantity import amount_text


@dataclass(frozen=True, slots=True)
class NodeChange:
    """Annotations, labels and resources that are to be others, by name; None takes one away.

    Resources are both capacity and allocatable. `problems` are phrases about what could not be read or decided.
    """

    annotations: Mapping[str, str | None] = field(default_factory=dict)
    labels: Mapping[str, str | None] = field(default_factory=dict)
    resources: Mapping[str, int | None] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def changes_anything(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.annotations or self.labels or self.resources)

    @property
    def metadata_patch(self) -> dict[str, Any]:
        """A merge patch of the node's metadata; empty where nothing in it changes."""
        changed = {
            key: dict(values)
            for key, values in (("annotations", self.annotations), ("labels", self.labels))
            if values
        }
        return {"metadata": changed} if changed else {}

    @property
    def status_patch(self) -> dict[str, Any]:
        """The same of its status."""
        if not self.resources:
            return {}
        amounts = {
            name: None if number is None else amount_text(name, number)
            for name, number in self.resources.items()
        }
        return {"status": {"capacity": amounts, "allocatable": amounts}}


NodePolicy = Callable[[RuleGraph, NodeSight, Record, int], NodeChange]
"""What a kind wants of a node, from its facts and the time (nanoseconds since 1970). Raises `CelError`: nothing then changes."""


def together(changes: Mapping[str, NodeChange]) -> NodeChange:
    """All of them in one."""
    return NodeChange(
        {name: value for one in changes.values() for name, value in one.annotations.items()},
        {name: value for one in changes.values() for name, value in one.labels.items()},
        {name: number for one in changes.values() for name, number in one.resources.items()},
        tuple(problem for one in changes.values() for problem in one.problems),
    )


def to_write(stand: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    """What of the wanted texts does not stand there already."""
    return {name: text for name, text in wanted.items() if stand.get(name) != text}
