"""A Koordinator beside us: what both of us would write."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.cli.doctoring.check import CheckOutcome, ClusterCheck, Examination, name_of, runs
from koordpolicy.kube import resources
from koordpolicy.runtime.reports.presence import COMPONENT, LABEL
from koordpolicy.yarn_operator.process import NAME as YARN_OPERATOR


@dataclass(frozen=True, slots=True)
class _Rival:
    """A component of Koordinator, ours that does the same, and what both write. A Deployment, unless `daemon`."""

    name: str
    ours: str
    both: str
    remedy: str
    daemon: bool = False


YARN_RIVAL: Final = "koord-yarn-operator"
_RIVALS: Final = (
    _Rival(
        "koord-manager",
        "manager",
        "batch and mid resources of nodes, NodeSLO, NodeMetric and the quota tree",
        "scale one of the two to 0; `koordpolicy export` and `import` carry its configuration over",
    ),
    _Rival(
        "koord-descheduler",
        "descheduler",
        "evictions: budgets hold for each of them alone",
        "scale one of the two to 0",
    ),
    _Rival(
        YARN_RIVAL,
        YARN_OPERATOR,
        "what nodes keep for YARN, and what YARN is offered there",
        "scale one of the two to 0",
    ),
    _Rival(
        "koordlet",
        "agent",
        "kernel files of all pods, NodeMetric and Device",
        "keep each off the other's nodes by nodeSelector, a label on the nodes that moved",
        daemon=True,
    ),
)
_WEBHOOKS: Final[Mapping[str, resources.Resource]] = MappingProxyType(
    {
        "koordinator-mutating-webhook-configuration": resources.MUTATING_WEBHOOKS,
        "koordinator-validating-webhook-configuration": resources.VALIDATING_WEBHOOKS,
    }
)
_COMPONENT: Final = "app.kubernetes.io/component"
_PART: Final = "app.kubernetes.io/part-of"


async def koordinator(examination: Examination) -> Iterable[ClusterCheck]:
    """Which of its components run beside ours of the same work. Two schedulers may: each places pods that name it."""
    ours = await installed(examination)
    deployments = await examination.all(resources.DEPLOYMENTS)
    daemons = await examination.all(resources.DAEMON_SETS)
    found = []
    for rival in _RIVALS:
        running = [
            one
            for one in (daemons if rival.daemon else deployments)
            if name_of(one) == rival.name and runs(one)
        ]
        for one in running:
            place = f"{rival.name} in `{one['metadata'].get('namespace')}`"
            if rival.ours in ours:
                found.append(
                    ClusterCheck("Koordinator", CheckOutcome.WARNING, f"{place} runs beside our {rival.ours}; both write {rival.both}", rival.remedy)
                )  # fmt: skip
            else:
                found.append(
                    ClusterCheck(
                        "Koordinator", CheckOutcome.GOOD, f"{place} runs, and no {rival.ours} of ours"
                    )
                )
    configured = [
        name
        for name, resource in _WEBHOOKS.items()
        if any(name_of(one) == name and one.get("webhooks") for one in await examination.all(resource))
    ]
    if configured and "manager" in ours:
        found.append(
            ClusterCheck(
                "Koordinator",
                CheckOutcome.WARNING,
                f"its webhooks change pods as well as ours: {', '.join(configured)}",
                "ClusterColocationProfiles are obeyed by both; delete its configurations when the move is done",
            )
        )
    return found or [ClusterCheck("Koordinator", CheckOutcome.GOOD, "none beside us")]


async def installed(examination: Examination) -> set[str]:
    """The components of ours that have pods, or a process with a Lease. Raises KubeError."""
    return {
        *_labelled(await examination.all(resources.DEPLOYMENTS)),
        *_labelled(await examination.all(resources.DAEMON_SETS)),
        *(
            str((one["metadata"].get("annotations") or {}).get(COMPONENT))
            for one in await examination.all(resources.LEASES)
            if LABEL in (one["metadata"].get("labels") or {})
        ),
    }


def _labelled(found: Iterable[Mapping[str, Any]]) -> set[str]:
    labels = [one["metadata"].get("labels") or {} for one in found if runs(one)]
    return {str(one.get(_COMPONENT)) for one in labels if one.get(_PART) == "koordpolicy"}
