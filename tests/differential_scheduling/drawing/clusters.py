"""A cluster: nodes, the pods on them, budgets, volumes; and pods that look for a node."""

from typing import Any

from tests.differential_scheduling.case import SCHEDULER, Case, Object
from tests.differential_scheduling.drawing import pods, volumes
from tests.differential_scheduling.drawing.chance import (
    HOSTNAME,
    LAST_PORT,
    NAMESPACES,
    NODE_LABELS,
    POD_LABELS,
    REGION,
    TAINTS,
    ZONE,
    ZONES,
    Chance,
)


def draw(seed: int, number: int, waiting: int) -> Case:
    """A cluster and so many pods that wait; the same for the same seed and number.

    The number stands in all names: objects of different clusters never have the same ones.
    """
    chance = Chance(f"{seed}/{number}")
    tag = f"c{number}"
    # Full clusters are where others have to go; clean ones are where nothing but the pods' own wishes refuses.
    full, clean = chance.happens(0.4), chance.happens(0.4)
    nodes = [_node(chance, f"{tag}-n{one}", one, clean=clean) for one in range(chance.randint(5, 15))]
    storage = volumes.Storage(chance, tag, [node["metadata"]["name"] for node in nodes])
    state = [_namespace(name, labels) for name, labels in NAMESPACES.items()]
    standing: list[Object] = []
    crowd = 7 if full else chance.uniform(0.5, 4)
    for number_of, node in enumerate(nodes):
        for at in range(min(int(chance.expovariate(1 / crowd)), 9)):
            standing.append(_standing(chance, storage, f"{tag}-s{number_of}-{at}", node, at, len(standing)))
    budgets = [_budget(chance, f"{tag}-b{one}") for one in range(chance.choice((0, 0, 1, 3)))]
    looking = [_looking(chance, storage, f"{tag}-p{one}") for one in range(waiting)]
    # Whoever sees the last of them has seen them all: its port tells (see `real.py`).
    standing.append(_last(f"{tag}-last", chance.choice(nodes)))
    return Case([*state, *nodes, *storage.objects, *budgets, *standing], looking)


def _last(name: str, node: Object) -> Object:
    port = {"containerPort": 80, "hostPort": LAST_PORT}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "gamma", "uid": f"uid-{name}"},
        "spec": {
            "nodeName": node["metadata"]["name"], "schedulerName": SCHEDULER, "priority": 1_000_000,
            "containers": [{"name": "main", "image": "example/app:1", "ports": [port]}],
        },
        "status": {"phase": "Running", "startTime": "2026-01-01T01:00:00Z"},
    }  # fmt: skip


def _namespace(name: str, labels: dict[str, str]) -> Object:
    written = {"kubernetes.io/metadata.name": name, **labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": written}}


def _node(chance: Chance, name: str, at: int, *, clean: bool) -> Object:
    labels = chance.labels(NODE_LABELS)
    if not chance.happens(0.1):
        labels[HOSTNAME] = name
    if not chance.happens(0.12):
        labels[ZONE] = ZONES[at % len(ZONES)] if chance.happens(0.7) else chance.choice(ZONES)
        labels[REGION] = "r1"
    spec: dict[str, Any] = {}
    taints = [
        {"key": key, "value": chance.choice(values), "effect": chance.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))}
        for key, values in TAINTS.items()
        if chance.happens(0.02 if clean else 0.18)
    ]  # fmt: skip
    if taints:
        spec["taints"] = taints
    if chance.happens(0.02 if clean else 0.1):
        spec["unschedulable"] = True
    there = {
        "cpu": chance.choice(("2", "4", "3500m")), "memory": chance.choice(("4Gi", "8Gi")),
        "ephemeral-storage": "20Gi", "pods": chance.choice(("110", "110", "110", "4")),
    }  # fmt: skip
    if chance.happens(0.3):
        there["example.com/gpu"] = chance.choice(("1", "2"))
    if chance.happens(0.2):
        there["hugepages-2Mi"] = "64Mi"
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels},
        "spec": spec, "status": {"capacity": there, "allocatable": there},
    }  # fmt: skip


def _standing(
    chance: Chance, storage: volumes.Storage, name: str, node: Object, at_node: int, at: int
) -> Object:
    """A pod that is on a node already. No two began at the same time: what goes first is never left to chance."""
    pod = pods.plain(chance, name)
    spec = pod["spec"]
    spec["nodeName"] = node["metadata"]["name"]
    spec["schedulerName"] = SCHEDULER
    spec["priority"] = chance.choice((0, 0, 10, 10, 50, 100))
    if chance.happens(0.25):
        pods.add_ports(chance, pod)
        # No two pods on a node ever have the same port: a kubelet would not start the second.
        (port,) = spec["containers"][0]["ports"]
        port["hostPort"] += 100 * (at_node // 2)
        port["protocol"] = "TCP" if at_node % 2 else "UDP"
    if chance.happens(0.18):
        pods.add_apart(chance, pod)
    if chance.happens(0.1):
        pods.add_near(chance, pod)
    if chance.happens(0.15):
        storage.add_claims(pod, used_by=node)
    if chance.happens(0.12):
        pods.add_disk(chance, pod)
    if chance.happens(0.08):
        pod["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        pod["metadata"]["deletionGracePeriodSeconds"] = 3600
    if chance.happens(0.05):
        pod["metadata"]["labels"] = {}
    pod["status"] = {
        "phase": "Succeeded" if chance.happens(0.04) else "Running",
        "startTime": f"2026-01-01T00:{at // 60:02}:{(at * 7) % 60:02}Z",
    }
    return pod


def _budget(chance: Chance, name: str) -> Object:
    selector: dict[str, Any] = chance.selector(POD_LABELS)
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": chance.choice(("alpha", "alpha", "beta"))},
        "spec": {"minAvailable": 1, "selector": selector},
        "status": {
            "disruptionsAllowed": chance.choice((0, 0, 1, 2)), "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1, "disruptedPods": {},
        },
    }  # fmt: skip


def _looking(chance: Chance, storage: volumes.Storage, name: str) -> Object:
    pod = pods.plain(chance, name)
    spec = pod["spec"]
    spec["schedulerName"] = SCHEDULER
    spec["priority"] = chance.choice((0, 10, 20, 100, 1000))
    if chance.happens(0.1):
        spec["preemptionPolicy"] = "Never"
    features = (
        (pods.add_selector, 2), (pods.add_affinity, 3), (pods.add_ports, 2), (pods.add_spread, 5),
        (pods.add_near, 2), (pods.add_apart, 3), (pods.add_large, 5), (pods.add_more_containers, 2),
        (pods.add_disk, 2),
        (lambda _, pod: storage.add_claims(pod), 3),
    )  # fmt: skip
    if chance.happens(0.45):
        pods.add_tolerations(chance, pod)
    for _ in range(chance.choice((0, 1, 1, 2, 2, 3))):
        (add,) = chance.choices([one for one, _ in features], [weight for _, weight in features])
        add(chance, pod)
    pod["status"] = {"phase": "Pending"}
    return pod
