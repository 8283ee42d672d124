"""How policy wants the amounts of a resource published on a node."""

from dataclasses import dataclass

from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.overcommit import KIND
from koordpolicy.model.facts import Record


@dataclass(frozen=True, slots=True)
class PublishPolicy:
    """The answers for one resource of one node.

    Amounts are written when they changed by more than `share`, or when `refresh` nanoseconds have passed (None:
    never for that). `ratio` is the CPU normalisation to apply, None for none; `deducts` says whether what
    other schedulers allocated is deducted.
    """

    share: float
    refresh: int | None
    ratio: float | None
    deducts: bool

    def due(self, written: int | None, now: int) -> bool:
        """Whether amounts written then are to be written anew although they did not change."""
        return written is not None and self.refresh is not None and now - written > self.refresh

    @classmethod
    def of(
        cls, graph: RuleGraph, resource: str, record: Record, now: int, cluster: Record
    ) -> "PublishPolicy":
        """Ask the policies about a node's record; what they cannot say here they do not say."""
        about = graph.about(KIND, resource, {"node": record, "now": TIMES.timestamp(now), "cluster": cluster})
        changed, refresh, normalizes, deducts = (
            about.value_or(f"publish.{field}", None)
            for field in ("whenChangedBy", "atLeastEvery", "normalizeCPU", "deductThirdParty")
        )
        return cls(
            0.0 if changed is None else changed / 100,
            None if refresh is None else refresh.ns,
            record.get("cpuNormalization") if normalizes else None,  # type: ignore[arg-type]  # a double
            bool(deducts),
        )
