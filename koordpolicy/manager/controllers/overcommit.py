"""How much of an overcommitted resource a node offers: the answer of the policies, not yet published."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from koordpolicy.algorithms.hysteresis import WELL, Standing
from koordpolicy.algorithms.records import usage_of
from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.bands import bands_up_to
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.node import amount_facts

KIND: Final = "Overcommit"
_AMOUNTS: Final = ("cpu", "memory")


class PublishAction(StrEnum):
    """What shall become of the published amounts."""

    PUBLISH = "publish"
    RESET = "reset"
    """The node ceases to offer the resource."""
    KEEP = "keep"
    """What was published last stays."""


@dataclass(frozen=True, slots=True)
class Offer:
    """CPU in millicores and memory in bytes."""

    cpu: int
    memory: int

    def times(self, share: float) -> "Offer":
        """So many percent of it."""
        return self if share == 100 else Offer(int(self.cpu * share / 100), int(self.memory * share / 100))


@dataclass(frozen=True, slots=True)
class Calculation:
    """What one resource comes to on one node. `whole` and `zones` (in order) only where it is published.

    `reason` says in a phrase why it is not, or why zones are missing. `failed` says that policy could not be
    evaluated, `cause` is an error of ours that nobody foresaw. `standing` is how the node counts, and `turns_in` the
    nanoseconds until it counts otherwise if nothing happens.
    """

    resource: str
    outcome: PublishAction
    whole: Offer = Offer(0, 0)
    zones: tuple[Offer, ...] = ()
    reason: str = ""
    failed: bool = False
    cause: Exception | None = field(default=None, compare=False)
    standing: Standing | None = None
    turns_in: int | None = None


def calculate(
    graph: RuleGraph,
    resource: str,
    node: Record,
    now: int,
    cluster: Mapping[str, Any] | None = None,
    standing: Standing = WELL,
    clock: int | None = None,
) -> Calculation:
    """Ask the policies about a resource (`batch`, `mid`) on a node; `now` in nanoseconds since 1970.

    A formula that cannot be evaluated keeps what is published: neither more nor less would be founded. `standing` is how
    the node counted so far; `clock` are nanoseconds of a clock that nobody sets, None for `now`.
    """
    # While nothing can be told of it, a node counts as it did; what speaks for the other state has to begin anew.
    kept = Standing(standing.abnormal)
    found = _calculate(graph, resource, node, now, cluster, standing, now if clock is None else clock)
    return replace(found, standing=kept) if found.standing is None else found


def _calculate(
    graph: RuleGraph,
    resource: str,
    node: Record,
    now: int,
    cluster: Mapping[str, Any] | None,
    standing: Standing,
    clock: int,
) -> Calculation:
    try:
        about = graph.about(KIND, resource, roots_of(graph, resource, node, now, cluster))
        if not about.value("enabled"):
            return Calculation(resource, PublishAction.RESET, reason="the resource is not offered")
        if _missing(node, about.value("onMissing.after")):
            keep = about.value("onMissing.action") == "Keep"
            return Calculation(
                resource,
                PublishAction.KEEP if keep else PublishAction.RESET,
                reason="the node's metrics are missing or old",
            )
        standing, turns_in = _judged(about, standing, clock)
        share = 100.0
        if standing.abnormal:
            share = max(about.value("abnormal.offers"), 0.0)
            if share == 0:
                return Calculation(
                    resource,
                    PublishAction.RESET,
                    reason="the node is abnormal",
                    standing=standing,
                    turns_in=turns_in,
                )
        whole = _offer(about, "").times(share)
        zones, reason = _zones(about, node, share)
    except CelError as error:
        return Calculation(resource, PublishAction.KEEP, reason=str(error), failed=True)
    except Exception as error:  # noqa: BLE001  # one resource of one node is the most that this may cost
        reason = f"internal error, please report: {type(error).__name__}: {error}"
        return Calculation(resource, PublishAction.KEEP, reason=reason, failed=True, cause=error)
    return Calculation(
        resource,
        PublishAction.PUBLISH,
        whole,
        zones,
        reason,
        failed=bool(reason),
        standing=standing,
        turns_in=turns_in,
    )


def _judged(about: About, before: Standing, clock: int) -> tuple[Standing, int | None]:
    """How the node counts by what holds now, and when that turns."""
    waits = [_wait(about, field) for field in ("abnormal.after", "abnormal.wellAfter")]
    standing = before.after(bool(about.value("abnormal.when")), clock, *waits)
    return standing, standing.turns_in(clock, *waits)


def _wait(about: About, field: str) -> int:
    said = about.value(field)
    return 0 if said is None else max(said.ns, 0)


def roots_of(
    graph: RuleGraph, resource: str, node: Record, now: int, cluster: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The records that the decisions of a resource read, by root."""
    return {
        "node": {**node, **_used_above(node, graph, resource)},
        "now": TIMES.timestamp(now),
        "cluster": cluster or {},
    }


def reads_cluster(graph: RuleGraph) -> bool:
    """Whether any formula asks for the cluster as a whole, whose sums cost something."""
    return graph.once(("reads cluster", KIND), lambda: _reads_cluster(graph))


def _reads_cluster(graph: RuleGraph) -> bool:
    names = [str(key) for key in graph.decisions if key.kind == KIND]
    return any(root == "cluster" for name in names for root, _ in facts_of(graph.expression(name)))


def _used_above(node: Record, graph: RuleGraph, resource: str) -> Record:
    pods: Any = node["pods"]
    return amount_facts("usage.highPriority", usage_of(pods, bands_up_to(graph, resource), outside=True))


def _offer(about: About, prefix: str, **more: Any) -> Offer:
    """The amounts; what no rule says, and what is negative, is nothing."""
    return Offer(*(max(about.value(prefix + field, **more) or 0, 0) for field in _AMOUNTS))


def _missing(node: Record, after: Any) -> bool:
    """Whether there are no metrics, or only older ones than policy accepts (None: any age is accepted)."""
    if "metric.age" not in node:
        return True
    return after is not None and bool(after < node["metric.age"])


def _zones(about: About, node: Record, share: float) -> tuple[tuple[Offer, ...], str]:
    """The zones' offers; none where policy does not speak of zones, or, with the reason, where one fails."""
    records: Any = node["zones"]
    if not any(about.says(f"zone.{field}") for field in _AMOUNTS):
        return (), ""
    try:
        return tuple(_offer(about, "zone.", zone=record).times(share) for record in records), ""
    except CelError as error:
        return (), f"zones: {error}"
