"""What Kubernetes' descheduler and that of Koordinator call strategies and their arguments, and how the kind Descheduling says it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

STRATEGIES: Final = (
    "CustomPriority",
    "FragmentationAware",
    "HighNodeUtilization",
    "LowNodeUtilization",
    "PodLifeTime",
    "RemoveDuplicates",
    "RemoveFailedPods",
    "RemovePodsHavingTooManyRestarts",
    "RemovePodsViolatingInterPodAntiAffinity",
    "RemovePodsViolatingNodeAffinity",
    "RemovePodsViolatingNodeTaints",
    "RemovePodsViolatingTopologySpreadConstraint",
    "ScaleDownBinPack",
)
"""Strategies of the built-in pack that are plugins there. LowNodeLoad is a plugin here, too."""


def _parameter(name: str, example: str) -> str:
    return f"write it below `spec.parameters`: `{name}: {{value: {example}}}`"


ARGUMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "maxPodLifeTimeSeconds": _parameter("maxPodLifeTime", "24h"),
        "minPodLifetimeSeconds": _parameter("minPodLifetime", "1h"),
        "states": _parameter("podLifeTimeStates", "[Pending]") + ", or `restartStates`",
        "reasons": _parameter("failedReasons", "[OutOfcpu]"),
        "exitCodes": _parameter("failedExitCodes", "[137]"),
        "excludeOwnerKinds": _parameter("excludeOwnerKinds", "[Job]"),
        "podRestartThreshold": _parameter("podRestartThreshold", "100"),
        "includingInitContainers": _parameter("includingInitContainers", "true"),
        "includePreferNoSchedule": _parameter("includePreferNoSchedule", "true"),
        "nodeAffinityType": "required node affinity always counts; of preferred one "
        + _parameter("preferredNodeAffinity", "true"),
        "excludedTaints": _parameter("excludedTaints", "[team=a]"),
        "includedTaints": _parameter("includedTaints", "[team=a]"),
        "maxPodsToEvict": "write it as `total` of the strategy",
        "thresholds": "write it as `load.low` of LowNodeUtilization, or the parameter `packThresholds` of HighNodeUtilization: `{cpu: 20%}`",
        "targetThresholds": "write it as `load.high` of the strategy: `{cpu: 70%}`",
        "lowThresholds": "write it as `load.low` of the strategy: `{cpu: 45%}`",
        "highThresholds": "write it as `load.high` of the strategy: `{cpu: 65%}`",
        "prodLowThresholds": "write it as `load.prodLow` of the strategy: `{cpu: 45%}`",
        "prodHighThresholds": "write it as `load.prodHigh` of the strategy: `{cpu: 65%}`",
        "useDeviationThresholds": "write it as `load.deviation` of the strategy",
        "numberOfNodes": "write it as `load.leastTargets` of the strategy",
        "nodeMetricExpirationSeconds": "write it as `load.staleAfter` of the strategy: `180s`",
        "resourceWeights": "write it as `load.weights` of the strategy",
        "detectorCacheTimeout": "write it as `load.anomaly.forgottenAfter` of the strategy",
        "anomalyCondition": "write it as `load.anomaly` of the strategy",
        "evictionOrder": _parameter("evictionOrder", "[dear, cheap]"),
        "evictionModes": _parameter("onlyThresholdingResources", "true"),
        "namespaces": "say it of pods: parameters `includedNamespaces` and `excludedNamespaces`, or `pod.namespace` in `candidates`",
        "evictableNamespaces": "say it of pods: parameters `includedNamespaces` and `excludedNamespaces`, or `pod.namespace` in `candidates`",
        "labelSelector": "say it in `candidates`: `pod.labels[?'app'].orValue('') == 'web'`",
        "nodeSelector": "say it in `nodes`: `node.labels[?'pool'].orValue('') == 'one'`",
        "nodeFit": "write it as `fits` of the strategy, or `load.fitsLoad`",
        "args": "arguments of plugins are fields of the strategy, such as `load`, or parameters below `spec.parameters`",
        "deschedulingInterval": "write it as `spec.interval`: `120s`",
        "evictionLimits": "write it as `spec.limits`",
        "maxNoOfPodsToEvictPerNode": "write it as `spec.limits.perNode`",
        "maxNoOfPodsToEvictPerNamespace": "write it as `spec.limits.perNamespace`",
        "maxNoOfPodsToEvictTotal": "write it as `spec.limits.total`",
    }
)
"""Arguments by their names there, with what to write here."""


def argument_help(kind: str, key: str) -> str | None:
    """What to write in a document of a kind for an argument of a descheduler's plugin; None for other keys."""
    return ARGUMENTS.get(key) if kind == "Descheduling" else None


def plugin_help(kind: str, key: str, value: object) -> str | None:
    """What to write for a plugin that is a strategy of the pack; None for other names."""
    if kind != "Descheduling" or key != "plugin" or value not in STRATEGIES:
        return None
    return (
        f"`{value}` is a strategy of the pack and needs no plugin: write `{{name: {value}, enabled: true}}`"
    )
