"""One filter or score of a profile: what it asks of policy, and who answers it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from koordpolicy.cluster.events import EVERY_EVENT, Event
from koordpolicy.cluster.prepared import PreparedDecision
from koordpolicy.scheduler.plugins import Parameters, Plugin


@dataclass(frozen=True, slots=True)
class Step:
    """A filter or a score of the profile. `place` is `filter:NAME` or `score:NAME`.

    `expression` says whether policy gives one, beside or instead of the plugin. `reads` are the facts of
    nodes that it depends on.
    """

    name: str
    enabled: PreparedDecision
    plugin: Plugin | None
    parameters: tuple[tuple[str, PreparedDecision], ...]
    expression: bool
    reads: frozenset[str] = frozenset()
    helped_by: frozenset[Event] = EVERY_EVENT
    weight: PreparedDecision | None = None
    normalize: str = "None"
    tells_time: bool = False
    """Whether its expression reads the time."""
    fixed: Parameters | None = field(init=False)
    """The values of the parameters where policy says the same for every pod."""
    place: str = field(init=False)
    looks_beyond: bool = field(init=False)
    """Whether the plugin looks beyond a node's own row."""
    speaks_by_key: bool = field(init=False)
    """Whether it has nothing to say where its plugin has no cache key."""
    reads_time: bool = field(init=False)
    """Whether its answer may change with nothing but the time."""
    always: bool = field(init=False)
    """Whether policy has every pod asked."""
    fixed_weight: int | None = field(init=False)
    """The weight of a score where policy says the same for every pod."""

    def __post_init__(self) -> None:
        constant = all(decision.program is None for _, decision in self.parameters)
        values = Parameters({name: decision.constant for name, decision in self.parameters})
        object.__setattr__(self, "fixed", values if constant else None)
        object.__setattr__(self, "place", f"{'filter' if self.weight is None else 'score'}:{self.name}")
        beyond = self.plugin is not None and not self.plugin.row_only
        object.__setattr__(self, "looks_beyond", beyond)
        object.__setattr__(self, "speaks_by_key", beyond and not self.expression)
        asks = (self.enabled, *(decision for _, decision in self.parameters))
        timed = any(root == "now" for decision in asks for root, _ in decision.facts)
        object.__setattr__(self, "reads_time", timed or self.tells_time)
        always = self.enabled.program is None and self.enabled.constant is not False
        object.__setattr__(self, "always", always)
        weighs = (self.enabled, *(() if self.weight is None else (self.weight,)))
        same = all(decision.program is None for decision in weighs)
        object.__setattr__(self, "fixed_weight", self.weighs({}) if same else None)

    @property
    def ever(self) -> bool:
        """Whether policy has it asked of any pod at all."""
        return self.enabled.program is not None or self.enabled.constant is not False

    @property
    def depends_on_pods(self) -> bool:
        """Whether other pods on a node can change the answer about it."""
        return Event.POD_GONE in self.helped_by

    def values(self, records: Mapping[str, Any]) -> Parameters:
        """The values of the parameters for a pod. Raises CelError."""
        if self.fixed is not None:
            return self.fixed
        return Parameters({name: decision.value(records) for name, decision in self.parameters})

    def weighs(self, records: Mapping[str, Any]) -> int:
        """The weight of a score for a pod; 0 where it takes no part. Raises CelError."""
        if self.weight is None or self.enabled.value(records) is False:
            return 0
        weight = self.weight.value(records)
        return weight if isinstance(weight, int) else 0

    def settled(self, changed: frozenset[str] | None) -> bool:
        """Whether it says the same of nodes of which only these facts have changed (None: any may have)."""
        plugin = self.plugin
        return (
            changed is not None
            and plugin is not None
            and not self.expression
            and plugin.cache_key is None
            and plugin.rank is None
            and plugin.node_facts.isdisjoint(changed)
        )
