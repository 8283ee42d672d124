"""Plans that stay while nothing that they follow from has changed: most of a node is from round to round as it was."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.plan import Plan, joined
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts

_OBJECTS: Final = frozenset({"node", "pod", "container"})
"""Records that say what they say until they are another; the others change by themselves, as time does."""


class ReadFacts:
    """What the decisions of some kinds read, by the records that they are asked about."""

    def __init__(self, graph: RuleGraph, kinds: Sequence[str]) -> None:
        read = {
            fact for key in graph.decisions if key.kind in kinds for fact in graph.program(str(key)).facts
        }
        self.timeless = all(root in _OBJECTS for root, _path in read)
        """Whether equal facts give equal answers, whenever they are asked."""
        self._paths = {name: tuple(sorted(path for root, path in read if root == name)) for name in _OBJECTS}

    def reads_nothing(self, root: str) -> bool:
        """Whether they read nothing of a record."""
        return not self._paths[root]

    def values(self, root: str, record: Facts) -> tuple[Any, ...]:
        """What they read of one record."""
        return tuple(record.get(path) for path in self._paths[root])


def read_facts(graph: RuleGraph, kinds: Sequence[str]) -> ReadFacts:
    """The same of each revision once."""
    return graph.once((ReadFacts, *kinds), lambda: ReadFacts(graph, kinds))


class JoinedPlans:
    """Several plans in one: the very plan of the last time where the parts say what they said."""

    def __init__(self) -> None:
        self._parts: tuple[Plan, ...] = ()
        self._whole = Plan()

    def join(self, *parts: Plan) -> Plan:
        """One plan of them, in their order."""
        if parts != self._parts:
            self._parts, self._whole = parts, joined(parts)
        return self._whole


class Unchanged:
    """A strategy that asks `kinds` of pods' objects and of the node, whose record it reads at `paths` besides.

    It plans anew when one of these is another: the policies, the pods, the CPUs, the facts that policies read.
    """

    def __init__(
        self, plan: Callable[[NodeFrame], Plan], kinds: Sequence[str], paths: Sequence[str] = ()
    ) -> None:
        self._make = plan
        self._kinds = tuple(kinds)
        self._paths = tuple(paths)
        self._same: tuple[Any, ...] = ()
        self._facts: tuple[Any, ...] | None = None
        self._plan = Plan()

    def plan(self, frame: NodeFrame) -> Plan:
        """What is wanted now: the very plan of the last time where nothing has changed. Raises `CelError`."""
        same = (frame.graph, frame.pods, frame.processors)
        facts = self._read(frame)
        known = len(same) == len(self._same) and all(
            one is other for one, other in zip(same, self._same, strict=True)
        )
        if facts is None or not known or facts != self._facts:
            self._facts = None
            self._plan = self._make(frame)
            self._same, self._facts = same, facts
        return self._plan

    def _read(self, frame: NodeFrame) -> tuple[Any, ...] | None:
        read = read_facts(frame.graph, self._kinds)
        if not read.timeless:
            return None
        values = read.values("node", frame.record)
        own = tuple(frame.record.get(path) for path in self._paths)
        return (*values, *own, frame.reserved_cpus, frame.kubelet_cpus)
