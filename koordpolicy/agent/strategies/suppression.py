"""CPU suppression: what policy wants of best-effort work on this node now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.algorithms.container_resources import LEAST_QUOTA, PERIOD
from koordpolicy.algorithms.suppress import CpusetLimits, QuotaLimits
from koordpolicy.graph import About, RuleGraph
from koordpolicy.graph.keys import mapping_keys
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record

KIND: Final = "CPUSuppress"
CPUSET: Final = "cpuset"
QUOTA: Final = "cfsQuota"
_MICROSECOND: Final = 1000
"""Nanoseconds."""

_NO_CPUSET_LIMITS: Final = CpusetLimits(minimum_cpus=0, growth=1.0)
_NO_QUOTA_LIMITS: Final = QuotaLimits(PERIOD, minimum=LEAST_QUOTA, growth=1.0, negligible=0.0)


class SuppressionAction(StrEnum):
    """What shall become of best-effort work."""

    SUPPRESS = "suppress"
    """It is held to the target."""
    RECOVER = "recover"
    """It may use all CPUs that are not others' own."""
    KEEP = "keep"
    """What was written last stays."""


@dataclass(frozen=True, slots=True)
class Suppression:
    """The decision on one node. `target` in millicores, the minimum applied; limits are what policy says of pace.

    `figures` are shown beside it, in millicores by name. `reason` says in a phrase why there is no target.
    """

    outcome: SuppressionAction
    mechanism: str = CPUSET
    target: int = 0
    cpuset_limits: CpusetLimits = _NO_CPUSET_LIMITS
    quota_limits: QuotaLimits = _NO_QUOTA_LIMITS
    figures: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    reason: str = ""


class CPUSuppression:
    """The policies of one revision on suppression. Immutable."""

    def __init__(self, graph: RuleGraph) -> None:
        self._graph = graph
        self._figures = mapping_keys(graph, KIND).get(("", "figures"), ())

    def decide(self, node: Record, now: int) -> Suppression:
        """What holds for the node; `now` in nanoseconds since 1970.

        A target that cannot be computed counts like a missing measurement.
        """
        if not self._graph.subjects(KIND):
            return Suppression(SuppressionAction.RECOVER, reason="no policy speaks of suppression")
        about = self._about(node, now)
        try:
            if not about.value("enabled"):
                return Suppression(SuppressionAction.RECOVER, reason="suppression is not enabled")
            if not _missing(node, about.value("onMissing.after")):
                return _held(about, _shown(about, self._figures))
            problem = "the node's use of CPU was not measured lately"
        except CelError as error:
            problem = str(error)
        recovers = about.value_or("onMissing.action", None) == "Recover"
        return Suppression(SuppressionAction.RECOVER if recovers else SuppressionAction.KEEP, reason=problem)

    def by_quota(self, node: Record, now: int) -> bool:
        """Whether policy holds best-effort work back by one quota for all of it.

        This does not change with measurements. Raises `CelError` where it cannot be told.
        """
        if not self._graph.subjects(KIND):
            return False
        about = self._about(node, now)
        return about.value("mechanism") == QUOTA and bool(about.value("enabled"))

    def _about(self, node: Record, now: int) -> About:
        return self._graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})


def _missing(node: Record, after: Any) -> bool:
    """Whether there is no measurement, or only one older than policy accepts (None: any age is accepted)."""
    if "usage.total.cpu" not in node or "metric.age" not in node:
        return True
    return after is not None and bool(after < node["metric.age"])


def _shown(about: About, names: Sequence[str]) -> dict[str, int]:
    """The figures that can be told: a mistake in one must not keep the target from being reached."""
    figures = {}
    for name in names:
        figure = about.value_or(f"figures[{name}]", None)
        if figure is not None:
            figures[name] = figure
    return figures


def _held(about: About, figures: Mapping[str, int]) -> Suppression:
    target, minimum = about.value("target"), about.value("minimum")
    if target is None:
        return Suppression(SuppressionAction.RECOVER, reason="no policy sets a target for this node")
    step, deadband, least = (
        about.value("growth.step"),
        about.value("growth.deadband"),
        about.value("minimumQuota"),
    )
    growth = 1.0 if step is None else step / 100
    return Suppression(
        SuppressionAction.SUPPRESS,
        about.value("mechanism") or CPUSET,
        target if minimum is None else max(target, minimum),
        CpusetLimits(about.value("minimumCPUs") or 0, growth),
        QuotaLimits(
            PERIOD,
            max(LEAST_QUOTA, 0 if least is None else least.ns // _MICROSECOND),
            growth,
            0.0 if deadband is None else deadband / 100,
        ),
        figures,
    )
