"""Pods, and what may be added to them."""

from typing import Any

from tests.differential_scheduling.case import Object
from tests.differential_scheduling.drawing.chance import (
    ANY_ADDRESS,
    NAMESPACES,
    NODE_LABELS,
    POD_LABELS,
    TAINTS,
    TOPOLOGIES,
    ZONE,
    ZONES,
    Chance,
)

_SELECTED = {**NODE_LABELS, ZONE: ZONES}


def plain(chance: Chance, name: str) -> Object:
    """A pod with labels and a request, and nothing else."""
    requests = {
        "cpu": chance.choice(("100m", "250m", "500m", "1")),
        "memory": chance.choice(("64Mi", "256Mi", "1Gi")),
    }
    for one in list(requests):
        if chance.happens(0.2):
            del requests[one]
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": chance.choice(("alpha", "alpha", "beta", "gamma")), "uid": f"uid-{name}",
            "labels": chance.labels(POD_LABELS),
        },
        "spec": {"containers": [_container("main", requests)]},
    }  # fmt: skip


def _container(name: str, requests: dict[str, str], **more: Any) -> dict[str, Any]:
    limits = {key: text for key, text in requests.items() if "/" in key or key.startswith("hugepages")}
    resources = {"requests": requests, **({"limits": limits} if limits else {})} if requests else {}
    return {"name": name, "image": "example/app:1", "resources": resources, **more}


def add_large(chance: Chance, pod: Object) -> None:
    """It needs much, or something rare."""
    if "resources" in pod["spec"]:
        return
    requests = {
        "cpu": chance.choice(("1500m", "2", "3", "5")),
        "memory": chance.choice(("1Gi", "3Gi", "6Gi")),
    }
    del requests[chance.choice(("cpu", "memory"))]
    if chance.happens(0.3):
        requests["example.com/gpu"] = chance.choice(("1", "2"))
    if chance.happens(0.1):
        requests.update({"hugepages-2Mi": "32Mi", "cpu": "1"})
    if chance.happens(0.15):
        requests["ephemeral-storage"] = chance.choice(("1Gi", "30Gi"))
    pod["spec"]["containers"][0].update(_container("main", requests))
    if chance.happens(0.2):
        pod["spec"]["overhead"] = {"cpu": "250m", "memory": "100Mi"}
    elif chance.happens(0.25) and "initContainers" not in pod["spec"]:
        # Its containers together may not ask for more than the pod says.
        pod["spec"]["containers"][0].update(_container("main", {"cpu": "1"}))
        pod["spec"]["resources"] = {"requests": {"cpu": chance.choice(("1500m", "3")), "memory": "3Gi"}}


def add_more_containers(chance: Chance, pod: Object) -> None:
    """Containers that run before it, beside it, or both."""
    spec = pod["spec"]
    if "resources" in spec:
        return
    begin = len(spec.get("initContainers", ()))
    for number in range(begin, begin + chance.randint(1, 3)):
        requests = {"cpu": chance.choice(("200m", "1", "2500m")), "memory": chance.choice(("100Mi", "2Gi"))}
        more: dict[str, Any] = {"restartPolicy": "Always"} if chance.happens(0.5) else {}
        if more and chance.happens(0.3):
            more["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        spec.setdefault("initContainers", []).append(_container(f"init{number}", requests, **more))
    if chance.happens(0.4) and len(spec["containers"]) == 1:
        spec["containers"].append(_container("second", {"cpu": "300m"}))


def add_ports(chance: Chance, pod: Object) -> None:
    number = chance.choice((8080, 8080, 8443))
    port: dict[str, Any] = {"containerPort": 80, "hostPort": number}
    if chance.happens(0.5):
        port["hostIP"] = chance.choice((ANY_ADDRESS, "127.0.0.1", "10.1.1.1", "::"))
    if chance.happens(0.4):
        port["protocol"] = chance.choice(("TCP", "UDP"))
    pod["spec"]["containers"][0]["ports"] = [port]


def add_disk(chance: Chance, pod: Object) -> None:
    """It names a disk itself, which others may have."""
    reads: dict[str, Any] = {"readOnly": True} if chance.happens(0.5) else {}
    monitors = chance.choice((["m1", "m2"], ["m2"], ["m3"]))
    disk: dict[str, Any] = chance.choice(
        (
            {"gcePersistentDisk": {"pdName": "disk", **reads}},
            {"awsElasticBlockStore": {"volumeID": "disk", **reads}},
            {
                "iscsi": {
                    "targetPortal": "example.com",
                    "iqn": "iqn.2026-01.com.example:disk",
                    "lun": 0,
                    **reads,
                }
            },
            {"rbd": {"monitors": monitors, "image": "disk", **reads}},
        )
    )
    pod["spec"].setdefault("volumes", []).append(
        {"name": f"disk{len(pod['spec'].get('volumes', ()))}", **disk}
    )


def add_selector(chance: Chance, pod: Object) -> None:
    key = chance.choice(list(_SELECTED))
    pod["spec"]["nodeSelector"] = {key: chance.choice(_SELECTED[key])}


def add_affinity(chance: Chance, pod: Object) -> None:
    terms = [_node_term(chance, pod) for _ in range(chance.randint(1, 2))]
    affinity = pod["spec"].setdefault("affinity", {})
    affinity["nodeAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
    }


def _node_term(chance: Chance, pod: Object) -> dict[str, Any]:
    term: dict[str, Any] = {}
    if chance.happens(0.25):
        name = f"{pod['metadata']['name'].split('-')[0]}-n{chance.randrange(6)}"
        operator = chance.choice(("In", "In", "NotIn"))
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
        if chance.happens(0.6):
            return term
    if chance.happens(0.05):
        return term
    expressions = []
    for _ in range(chance.randint(1, 2)):
        if chance.happens(0.25):
            operator, value = chance.choice(("Gt", "Lt")), chance.choice(("0", "4", "6", "9"))
            expressions.append({"key": "rank", "operator": operator, "values": [value]})
        else:
            expressions.append(chance.requirement(_SELECTED))
    return {**term, "matchExpressions": expressions}


def add_tolerations(chance: Chance, pod: Object) -> None:
    found: list[dict[str, Any]] = []
    for _ in range(chance.randint(1, 2)):
        if chance.happens(0.2):
            found.append({"operator": "Exists"})
            continue
        key = chance.choice([*TAINTS, *TAINTS, "node.kubernetes.io/unschedulable"])
        one: dict[str, Any] = {"key": key}
        if chance.happens(0.4):
            one["operator"] = "Exists"
        else:
            one["value"] = chance.choice(TAINTS.get(key, ("",)))
            if chance.happens(0.5):
                one["operator"] = "Equal"
        if chance.happens(0.6):
            one["effect"] = chance.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        found.append(one)
    pod["spec"]["tolerations"] = found


def add_spread(chance: Chance, pod: Object) -> None:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(chance.randint(1, 2)):
        hard = chance.happens(0.85)
        one: dict[str, Any] = {
            "maxSkew": chance.choice((1, 1, 2, 3)), "topologyKey": chance.choice(TOPOLOGIES),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        }  # fmt: skip
        if not chance.happens(0.07):
            one["labelSelector"] = chance.selector()
            if chance.happens(0.2):
                used = str(one["labelSelector"])
                keys = [key for key in ("version", "tier") if key not in used]
                if keys:
                    one["matchLabelKeys"] = keys[:1]
        if hard and chance.happens(0.2):
            one["minDomains"] = chance.randint(1, 5)
        if chance.happens(0.3):
            one["nodeAffinityPolicy"] = chance.choice(("Honor", "Ignore"))
        if chance.happens(0.3):
            one["nodeTaintsPolicy"] = chance.choice(("Honor", "Ignore"))
        found[one["topologyKey"], one["whenUnsatisfiable"]] = one
    pod["spec"]["topologySpreadConstraints"] = list(found.values())


def _pod_term(chance: Chance) -> dict[str, Any]:
    term: dict[str, Any] = {"topologyKey": chance.choice(TOPOLOGIES)}
    if not chance.happens(0.05):
        term["labelSelector"] = chance.selector()
        if chance.happens(0.12) and "version" not in str(term):
            term[chance.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    if chance.happens(0.25):
        term["namespaces"] = chance.some(list(NAMESPACES), 2)
    if chance.happens(0.2):
        term["namespaceSelector"] = chance.selector({"team": ("red", "blue"), "kind": ("test",)})
    return term


def _add_terms(chance: Chance, pod: Object, field: str, most: int) -> None:
    affinity = pod["spec"].setdefault("affinity", {})
    affinity[field] = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            _pod_term(chance) for _ in range(chance.randint(1, most))
        ]
    }


def add_near(chance: Chance, pod: Object) -> None:
    _add_terms(chance, pod, "podAffinity", 2)


def add_apart(chance: Chance, pod: Object) -> None:
    _add_terms(chance, pod, "podAntiAffinity", 2)
