"""What pods ask for and what nodes have."""

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from tests.oracle.cluster import Obj

_SUFFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9}


def amount(text: object) -> Fraction:
    """A quantity as an exact number."""
    written = str(text)
    if written.endswith("m"):
        return Fraction(written[:-1]) / 1000
    for suffix, factor in _SUFFIXES.items():
        if written.endswith(suffix):
            return Fraction(written[: -len(suffix)]) * factor
    return Fraction(written)


Amounts = dict[str, Fraction]


def _read(written: Obj | None) -> Amounts:
    return {resource: amount(value) for resource, value in (written or {}).items()}


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = defaultdict(Fraction)
    for part in parts:
        for resource, value in part.items():
            total[resource] += value
    return dict(total)


def requests(pod: Obj) -> Amounts:
    """What a pod asks for altogether."""
    spec = pod["spec"]
    containers = [_read((one.get("resources") or {}).get("requests")) for one in spec.get("containers") or []]
    sidecars: list[Amounts] = []
    peaks: list[Amounts] = []
    for one in spec.get("initContainers") or []:
        asked = _read((one.get("resources") or {}).get("requests"))
        if one.get("restartPolicy") == "Always":
            sidecars.append(asked)
        else:
            peaks.append(_sum([*sidecars, asked]))
    total = _sum([*containers, *sidecars])
    for peak in peaks:
        for resource, value in peak.items():
            total[resource] = max(total.get(resource, Fraction(0)), value)
    for resource, value in _read((spec.get("resources") or {}).get("requests")).items():
        if resource in ("cpu", "memory") or resource.startswith("hugepages-"):
            total[resource] = value
    return _sum([total, _read(spec.get("overhead"))])


def shortages(pod: Obj, node: Obj, others: list[Obj]) -> list[tuple[str, bool]]:
    """What a node is short of for a pod: the reason, and whether it would be even without other pods."""
    has = _read(node["status"].get("allocatable"))
    found = []
    if len(others) + 1 > has.get("pods", 0):
        found.append(("Too many pods", False))
    used = _sum(requests(other) for other in others)
    for resource, asked in requests(pod).items():
        there = has.get(resource, Fraction(0))
        if asked > 0 and asked > there - used.get(resource, Fraction(0)):
            found.append((f"Insufficient {resource}", asked > there))
    return found


def ports(pod: Obj) -> set[tuple[str, str, int]]:
    """The host ports of a pod: address, protocol, number."""
    spec = pod["spec"]
    sidecars = [one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"]
    return {
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])  # noqa: S104
        for container in [*(spec.get("containers") or []), *sidecars]
        for port in container.get("ports") or []
        if port.get("hostPort")
    }


def ports_conflict(one: set[tuple[str, str, int]], other: set[tuple[str, str, int]]) -> bool:
    """Whether two pods cannot be on one node for their ports."""
    everywhere = "0.0.0.0"  # noqa: S104
    return any(a[1:] == b[1:] and (a[0] == b[0] or everywhere in (a[0], b[0])) for a in one for b in other)
