"""Random documents of `slo-controller-config`, within the bounds that Koordinator names."""

import json
from random import Random
from typing import Any

from koordpolicy.model.slo_config import LAYOUTS, Entries, FieldForm, Fields, Items, Plain, Shape

_WORDS = {
    "cpuSuppressPolicy": ("cpuset", "cfsQuota", ""),
    "cpuEvictPolicy": ("evictByRealLimit", "evictByAllocatable", ""),
    "policy": ("none", "auto", "cpuBurstOnly", "cfsQuotaBurstOnly", ""),
    "cpuPolicy": ("groupIdentity", "coreSched"),
    "netQOSPolicy": ("tc", "terway-qos"),
    "cpuCalculatePolicy": ("usage", "maxUsageRequest"),
    "memoryCalculatePolicy": ("usage", "request", "maxUsageRequest"),
    "midReclaimMode": ("static", "dynamic"),
    "metricMemoryCollectPolicy": ("usageWithoutPageCache", "usageWithHotPageCache"),
    "type": ("device", "volumegroup", "podvolume"),
    "name": ("vda", "vdb"),
    "priority": ("koord-prod", "koord-batch"),
    "qos": ("LS", "BE"),
    "base": ("CgroupRoot", "Kubepods"),
    "parentDir": ("a", ""),
    "relativePath": ("b",),
}
_SWITCHES = ("schedIdle", "priorityEnable", "oomKillGroup", "schedGroupIdentityEnabled")
LABELS: tuple[dict[str, str], ...] = tuple(
    {key: value for key, value in (("a", a), ("b", b)) if value}
    for a in ("", "1", "2", "3")
    for b in ("", "1", "2")
)
"""Labels of nodes, of which selectors name some."""


def data(random: Random) -> dict[str, str]:
    """The `data` of a ConfigMap."""
    return {key: json.dumps(document(key, random)) for key in LAYOUTS}


def document(key: str, random: Random) -> dict[str, Any]:
    layout = LAYOUTS[key]
    cluster = strategy(layout.strategy, random, 0.4)
    written = {layout.cluster: cluster} if layout.cluster and cluster else {} if layout.cluster else cluster
    entries = [
        {"name": f"n{number}", **_selector(random), **strategy(layout.strategy, random, 0.25)}
        for number in range(random.choice((0, 1, 2, 3)))
    ]
    return {**written, layout.entries: entries} if entries else written


def with_unknown_keys(value: Any, at: str, random: Random, share: float = 0.4) -> tuple[Any, set[str]]:
    """A document with keys that no field is called, in objects of fields, and their places; open mappings stay."""
    places: set[str] = set()
    if isinstance(value, list):
        pairs = [with_unknown_keys(one, f"{at}[{number}]", random) for number, one in enumerate(value)]
        return [one for one, _ in pairs], set().union(*(more for _, more in pairs))
    if not isinstance(value, dict):
        return value, places
    result: dict[str, Any] = {}
    for name, one in value.items():
        if name in _OPEN:
            result[name] = one
            continue
        result[name], more = with_unknown_keys(one, f"{at}.{name}", random)
        places |= more
    if random.random() < share:
        result["bogus"] = random.choice((1, "text", {"enable": True}, [1], True))
        places.add(f"{at}.bogus")
    return result, places


_OPEN = ("nodeSelector", "schedFeatures", "ratioModel", "resourceAmplificationRatio")
"""Mappings whose keys are not fields."""


def strategy(shape: Fields, random: Random, share: float) -> dict[str, Any]:
    """Some of the fields."""
    return {
        name: _value(name, one, random, share)
        for name, one in shape.fields.items()
        if name != "extensions" and random.random() < share
    }


def _selector(random: Random) -> dict[str, Any]:
    kind = random.random()
    if kind < 0.1:
        return {}
    if kind < 0.2:
        return {"nodeSelector": {}}
    labels = {key: random.choice("12") for key in "ab" if random.random() < 0.6}
    if kind < 0.7:
        return {"nodeSelector": {"matchLabels": labels or {"a": "1"}}}
    operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    line: dict[str, Any] = {"key": random.choice("ab"), "operator": operator}
    if operator in ("In", "NotIn"):
        line["values"] = random.sample("12", random.choice((1, 2)))
    return {"nodeSelector": {"matchExpressions": [line], **({"matchLabels": labels} if labels else {})}}


def _value(name: str, shape: Shape, random: Random, share: float) -> Any:
    match shape:
        case Fields():
            return strategy(shape, random, max(share, 0.5))
        case Items(element):
            return [_item(name, element, random) for _ in range(random.choice((0, 1, 2)))]
        case Entries(value):
            return {
                key: _value(key, value, random, share)
                for key in random.sample("ABC", random.choice((0, 1, 2)))
            }
        case Plain():
            return _plain(name, shape, random)


def _item(name: str, element: Shape, random: Random) -> Any:
    found = _value(name, element, random, 1.0)
    if name == "applications":
        found["name"] = random.choice(("db", "cache"))
    return found


def _plain(name: str, shape: Plain, random: Random) -> Any:
    match shape.form:
        case FieldForm.FLAG:
            return random.random() < 0.5
        case FieldForm.NUMBER:
            return random.choice((0.05, 0.1, 0.25, 1))
        case FieldForm.WORD | FieldForm.TEXT:
            return random.choice(_WORDS[name])
        case FieldForm.DURATION:
            return random.choice(("5m", "90s", "1h0m0s"))
        case FieldForm.QUANTITY:
            return random.choice(("0", "1G", "25G", "1Gi", "1500M"))
        case FieldForm.SHARE:
            return random.choice((0, 40, "50M", "1G"))
    if name in _SWITCHES:
        return random.choice((0, 1))
    low = 0 if shape.low is None else int(shape.low)
    if name.startswith("model") or name == "ioWeightPercent" or not shape.low_fits:
        low = max(low, 1)
    high = max(low, 100) if shape.high is None else int(shape.high)
    return random.choice((low, high, random.randint(low, high)))
