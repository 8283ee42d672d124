"""Random KubeSchedulerConfigurations: what is to be at work is drawn first, then one of the ways to say so."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

FILTERS = (
    *("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit"),
    *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
    *("PodTopologySpread", "InterPodAffinity"),
)
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
ADDED = ("LoadAwareScheduling", "NodeResourcesFitPlus", "ScarceResourceAvoidance")
RESOURCES = ("cpu", "memory", "example.com/card")


@dataclass
class Intended:
    """What a profile is meant to do."""

    filters: set[str]
    scores: dict[str, int]
    preempts: bool
    sampling: float
    parameters: dict[str, Any] = field(default_factory=dict)


def profile(name: str, random: Random) -> tuple[dict[str, Any], Intended]:
    """A profile, and what kube-scheduler with Koordinator's plugins makes of it."""
    filters = {one for one in FILTERS if random.random() < 0.8} | {"NodeResourcesFit"}
    scores = {
        one: random.choice([weight, 1, 7, 100]) for one, weight in WEIGHTS.items() if random.random() < 0.8
    }
    scores["NodeResourcesFit"] = random.randint(1, 100)
    for one in ADDED:
        if random.random() < 0.7:
            scores[one] = random.randint(1, 100)
    if random.random() < 0.7:
        filters.add("LoadAwareScheduling")
    intended = Intended(filters, scores, random.random() < 0.8, 0.0)
    written: dict[str, Any] = {"schedulerName": name, "plugins": _plugins(intended, random)}
    if random.random() < 0.7:
        intended.sampling = random.randint(0, 100)
        written["percentageOfNodesToScore"] = int(intended.sampling)
    working = {*filters, *scores}
    config = []
    for plugin, draw in _ARGUMENTS.items():
        if plugin in working:
            arguments, parameters = draw(random)
            intended.parameters.update(parameters)
            config.append({"name": plugin, "args": {"kind": f"{plugin}Args", **arguments}})
    written["pluginConfig"] = config
    return written, intended


def _plugins(intended: Intended, random: Random) -> dict[str, Any]:
    points = {
        "filter": (dict.fromkeys(FILTERS, 0), dict.fromkeys(sorted(intended.filters), 0)),
        "score": (WEIGHTS, intended.scores),
    }
    found: dict[str, Any] = {}
    for point, (default, wanted) in points.items():
        if random.random() < 0.5:
            disabled, added = ["*"], dict(wanted)
        else:
            disabled = [name for name in default if name not in wanted]
            added = {name: weight for name, weight in wanted.items() if default.get(name) != weight}
        found[point] = {
            "disabled": [{"name": name} for name in disabled],
            "enabled": [
                {"name": name, **({"weight": weight} if weight else {})} for name, weight in added.items()
            ],
        }
    if not intended.preempts:
        found["postFilter"] = {"disabled": [{"name": random.choice(["*", "DefaultPreemption"])}]}
    return found


def _map(random: Random, low: int, high: int) -> dict[str, int]:
    return {name: random.randint(low, high) for name in RESOURCES[:2] if random.random() < 0.7}


def _load(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    limits, prod, factors = _map(random, 0, 100), _map(random, 1, 100), _map(random, 1, 100)
    windowed, seconds = _map(random, 1, 100), random.randint(1, 600)
    percentile = random.choice(["", "avg", "p50", "p90", "p95", "p99"])
    flags = {
        name: random.random() < 0.5
        for name in ("filterExpiredNodeMetrics", "scoreAccordingProdUsage", "allowCustomizeEstimation")
    }
    written = {
        **flags,
        "usageThresholds": limits,
        "prodUsageThresholds": prod,
        "estimatedScalingFactors": factors,
        "nodeMetricExpirationSeconds": seconds,
        "estimator": "defaultEstimator",
        "aggregated": {
            "usageThresholds": windowed,
            "usageAggregationType": percentile,
            "usageAggregatedDuration": f"{seconds}s",
        },
    }
    parameters = {
        **flags,
        "usageThresholds": limits or {"cpu": 65, "memory": 95},
        "prodUsageThresholds": prod,
        "estimatedScalingFactors": factors,
        "nodeMetricExpiration": seconds * 10**9,
        "aggregatedUsageThresholds": windowed,
        "usageAggregationType": percentile or "last",
        "usageAggregatedDuration": seconds * 10**9,
    }
    return written, parameters


def _fit(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    weights = _map(random, 1, 100)
    kind = random.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
    strategy: dict[str, Any] = {
        "type": kind,
        "resources": [{"name": name, "weight": weight} for name, weight in weights.items()],
    }
    parameters: dict[str, Any] = {"fitStrategy": kind, "fitWeights": weights or {"cpu": 1, "memory": 1}}
    if kind == "RequestedToCapacityRatio":
        top = random.randint(0, 10)
        strategy["requestedToCapacityRatio"] = {
            "shape": [{"utilization": 0, "score": 10 - top}, {"utilization": 100, "score": top}]
        }
        parameters["fitShape"] = {"0%": 10 - top, "100%": top}
    return {"scoringStrategy": strategy, "ignoredResources": ["example.com/card"]}, {
        **parameters,
        "ignoredResources": ["example.com/card"],
    }


def _spread(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    if random.random() < 0.4:
        return {"defaultingType": "System"}, {"spreadOverUnlabelled": True}
    soft, hard = random.randint(1, 9), random.randint(1, 9)
    constraints = [
        {"maxSkew": soft, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
        {"maxSkew": hard, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
    ]
    return {"defaultingType": "List", "defaultConstraints": constraints}, {
        "preferredSpread": {"rack": soft},
        "requiredSpread": {"zone": hard},
        "spreadOverUnlabelled": False,
    }


def _fit_plus(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    kinds = {name: random.choice(["LeastAllocated", "MostAllocated"]) for name in RESOURCES}
    weights = {name: random.randint(1, 100) for name in RESOURCES}
    written = {name: {"type": kinds[name], "weight": weights[name]} for name in RESOURCES}
    return {"resources": written}, {"fitPlusStrategies": kinds, "fitPlusWeights": weights}


def _affinity(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    said = {"hardPodAffinityWeight": random.randint(0, 100), "ignorePreferredTermsOfExistingPods": True}
    return said, said


def _scarce(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    names = sorted(random.sample(RESOURCES, 2))
    return {"resources": names}, {"scarceResources": names}


def _binding(random: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    seconds = random.randint(1, 900)
    return {"bindTimeoutSeconds": seconds}, {"bindTimeout": seconds * 10**9}


_ARGUMENTS = {
    "LoadAwareScheduling": _load,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _spread,
    "NodeResourcesFitPlus": _fit_plus,
    "InterPodAffinity": _affinity,
    "ScarceResourceAvoidance": _scarce,
    "VolumeBinding": _binding,
}
