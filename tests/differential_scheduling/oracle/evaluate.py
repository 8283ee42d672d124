"""All of it: the nodes that a pod fits on, why it does not on others, and who would have to go."""

from collections import Counter
from datetime import datetime

from tests.differential_scheduling.case import Judgement, Object, Room, key_of, name_of
from tests.differential_scheduling.oracle import neighbours, node, volumes
from tests.differential_scheduling.oracle.cluster import Cluster, labels_of, selects
from tests.differential_scheduling.oracle.node import Reasons


def _reasons(pod: Object, place: Object, cluster: Cluster) -> Reasons:
    """Why the pod does not fit: the reasons of the first filter that refuses."""
    wanted = pod["spec"].get("nodeName")
    named: Reasons = (
        [("node(s) didn't match the requested node name", False)]
        if wanted and wanted != name_of(place)
        else []
    )
    return (
        node.unschedulable(pod, place)
        or named
        or node.taints(pod, place)
        or node.affinity(pod, place)
        or node.ports(pod, place, cluster)
        or node.resources(pod, place, cluster)
        or volumes.restrictions(pod, place, cluster)
        or volumes.limits(pod, place, cluster)
        or volumes.binding(pod, place, cluster)
        or volumes.zones(pod, place, cluster)
        or neighbours.spread(pod, place, cluster)
        or neighbours.together(pod, place, cluster)
    )


def refusals(pod: Object, cluster: Cluster) -> Counter[str]:
    """How often which reason refuses the pod a node, whether or not another node takes it."""
    return Counter(text for place in cluster.nodes.values() for text, _ in _reasons(pod, place, cluster))


def judgement(pod: Object, cluster: Cluster) -> Judgement:
    """What is to be said of a pod that waits."""
    why = {name: _reasons(pod, place, cluster) for name, place in cluster.nodes.items()}
    feasible = frozenset(name for name, reasons in why.items() if not reasons)
    if feasible:
        return Judgement(feasible)
    counted = Counter(text for reasons in why.values() for text, _ in reasons)
    rooms = {}
    if pod["spec"].get("preemptionPolicy") != "Never":
        for name, reasons in why.items():
            if all(helps for _, helps in reasons):
                found = _room(pod, cluster.nodes[name], cluster)
                if found is not None:
                    rooms[name] = found
    vain = "" if rooms else _vain(pod, why, cluster)
    return Judgement(feasible, dict(counted), rooms, said=_said(pod, why, cluster), vain=vain)


def _said(pod: Object, why: dict[str, Reasons], cluster: Cluster) -> dict[str, int]:
    """The reasons as kube-scheduler counts them, which gate some pods, or some nodes, beforehand."""
    names = node.only_these(pod)
    if names is not None and not names:
        return {"pod affinity terms conflict": len(why)}
    unresolvable = volumes.before_nodes(pod, cluster) or volumes.missing_volume(pod, cluster)
    if unresolvable:
        return {unresolvable: len(why)}
    if names is None:
        return dict(Counter(text for reasons in why.values() for text, _ in reasons))
    counted = Counter(text for name, reasons in why.items() if name in names for text, _ in reasons)
    counted["node(s) didn't satisfy plugin(s) [NodeAffinity]"] += len(why.keys() - names)
    return dict(+counted)


def _vain(pod: Object, why: dict[str, Reasons], cluster: Cluster) -> str:
    """Why nobody can go from any node, in kube-scheduler's words."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return "not eligible due to preemptionPolicy=Never."
    names = node.only_these(pod)
    settled = volumes.before_nodes(pod, cluster) or volumes.missing_volume(pod, cluster)
    counted: Counter[str] = Counter()
    for name, reasons in why.items():
        if settled or (names is not None and name not in names) or not all(helps for _, helps in reasons):
            counted["Preemption is not helpful for scheduling"] += 1
        elif may_go := _less_important(pod, name, cluster):
            less = cluster.without(frozenset(map(key_of, may_go)))
            counted.update(text for text, _ in _reasons(pod, cluster.nodes[name], less))
        else:
            counted["No preemption victims found for incoming pod"] += 1
    listed = ", ".join(sorted(f"{count} {text}" for text, count in counted.items()))
    return f"0/{len(why)} nodes are available: {listed}."


def _less_important(pod: Object, name: str, cluster: Cluster) -> list[Object]:
    return [one for one in cluster.pods_on(name) if _priority(one) < _priority(pod)]


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def _started(pod: Object) -> float:
    return datetime.fromisoformat(pod["status"]["startTime"]).timestamp()


def _room(pod: Object, place: Object, cluster: Cluster) -> Room | None:
    """The fewest and least important pods that have to go from a node; None where that does not help."""
    may_go = _less_important(pod, name_of(place), cluster)
    gone = {key_of(one) for one in may_go}
    if not may_go or _reasons(pod, place, cluster.without(frozenset(gone))):
        return None
    may_go.sort(key=lambda one: (-_priority(one), _started(one)))
    broken = _breaking(may_go, cluster)
    violations = 0
    for one in [*(p for p in may_go if key_of(p) in broken), *(p for p in may_go if key_of(p) not in broken)]:
        key = key_of(one)
        if _reasons(pod, place, cluster.without(frozenset(gone - {key}))):
            violations += key in broken
        else:
            gone.discard(key)
    return Room(frozenset(gone), violations) if gone else None


def _breaking(pods: list[Object], cluster: Cluster) -> set[tuple[str, str]]:
    """Those whose going a budget does not allow any more, if they go in this order."""
    left = {
        key_of(one): one["status"].get("disruptionsAllowed", 0) for one in cluster.all("PodDisruptionBudget")
    }
    found = set()
    for pod in pods:
        for budget in cluster.all("PodDisruptionBudget"):
            selector = budget["spec"].get("selector")
            if (
                not labels_of(pod)
                or not selector
                or key_of(budget)[0] != key_of(pod)[0]
                or not selects(selector, labels_of(pod))
                or name_of(pod) in (budget["status"].get("disruptedPods") or {})
            ):
                continue
            left[key_of(budget)] -= 1
            if left[key_of(budget)] < 0:
                found.add(key_of(pod))
    return found


def best(rooms: dict[str, Room], cluster: Cluster) -> set[str]:
    """The nodes of which one is taken: least harm first; more than one where they are alike."""
    pods = {key_of(one): one for one in cluster.pods}

    def harm(room: Room) -> tuple[float, ...]:
        victims = [pods[key] for key in room.victims]
        highest = max(map(_priority, victims))
        return (
            room.violations,
            highest,
            sum(_priority(one) + 2**31 for one in victims),
            len(victims),
            -min(_started(one) for one in victims if _priority(one) == highest),
        )

    harms = {name: harm(room) for name, room in rooms.items()}
    return {name for name, one in harms.items() if one == min(harms.values())}
