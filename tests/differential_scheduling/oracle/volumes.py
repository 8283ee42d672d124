"""What volumes say to a pod and a node."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.differential_scheduling.case import Object, key_of, name_of
from tests.differential_scheduling.oracle.cluster import (
    Cluster,
    labels_of,
    node_selector_matches,
    quantity,
    selects,
)
from tests.differential_scheduling.oracle.neighbours import namespace_of
from tests.differential_scheduling.oracle.node import Reasons

_ZONES = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip
_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by"
    " another pod"
)
_NO_VOLUMES = "node(s) didn't find available persistent volumes to bind"


def _claim_names(pod: Object) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield volume["persistentVolumeClaim"]["claimName"]


def _claims(pod: Object, cluster: Cluster) -> list[Object]:
    found = (cluster.get("PersistentVolumeClaim", name, namespace_of(pod)) for name in _claim_names(pod))
    return [one for one in found if one is not None]


def _bound(claim: Object) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    return bool(claim["spec"].get("volumeName")) and "pv.kubernetes.io/bind-completed" in annotations


def _waits(claim: Object, cluster: Cluster) -> bool:
    found = cluster.get("StorageClass", claim["spec"].get("storageClassName") or "")
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def before_nodes(pod: Object, cluster: Cluster) -> str:
    """Why the pod's volumes fit no node whatever; empty where they might."""
    for name in _claim_names(pod):
        claim = cluster.get("PersistentVolumeClaim", name, namespace_of(pod))
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if (claim.get("status") or {}).get("phase") == "Lost":
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume'
        if claim["metadata"].get("deletionTimestamp"):
            return f'persistentvolumeclaim "{name}" is being deleted'
    if any(
        not _bound(claim) and (claim["spec"].get("volumeName") or not _waits(claim, cluster))
        for claim in _claims(pod, cluster)
    ):
        return "pod has unbound immediate PersistentVolumeClaims"
    return ""


def missing_volume(pod: Object, cluster: Cluster) -> str:
    """What kube-scheduler says beforehand of a claim whose volume is gone; empty where none is."""
    for claim in _claims(pod, cluster):
        name = claim["spec"].get("volumeName")
        if name and cluster.get("PersistentVolume", name) is None:
            return f'persistentvolume "{name}" not found'
    return ""


def _disks(pod: Object) -> Iterator[tuple[str, object, bool]]:
    """The disks that a pod itself names: kind, what identifies it, and whether it only reads."""
    for volume in pod["spec"].get("volumes") or ():
        for kind, key in (
            ("gcePersistentDisk", "pdName"),
            ("awsElasticBlockStore", "volumeID"),
            ("iscsi", "iqn"),
        ):
            if kind in volume:
                only_reads = bool(volume[kind].get("readOnly")) and kind != "awsElasticBlockStore"
                yield kind, volume[kind][key], only_reads
        if "rbd" in volume:
            disk = volume["rbd"]
            for monitor in disk["monitors"]:
                yield "rbd", (monitor, disk.get("pool") or "rbd", disk["image"]), bool(disk.get("readOnly"))


def restrictions(pod: Object, node: Object, cluster: Cluster) -> Reasons:
    there = [disk for other in cluster.pods_on(name_of(node)) for disk in _disks(other)]
    for kind, key, only_reads in _disks(pod):
        if any((kind, key) == other[:2] and not (only_reads and other[2]) for other in there):
            return [("node(s) had no available disk", True)]
    alone = {
        name_of(claim)
        for claim in _claims(pod, cluster)
        if "ReadWriteOncePod" in claim["spec"].get("accessModes", ())
    }
    for other, _ in cluster.placed():
        if namespace_of(other) == namespace_of(pod) and alone & set(_claim_names(other)):
            return [(_CONFLICT, True)]
    return []


def _attached(pod: Object, cluster: Cluster) -> set[tuple[str, str]]:
    """Driver and volume of each CSI volume of a pod."""
    found = set()
    for claim in _claims(pod, cluster):
        volume = cluster.get("PersistentVolume", claim["spec"].get("volumeName") or "")
        if volume is not None:
            if "csi" in volume["spec"]:
                found.add((volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]))
            continue
        made_by = cluster.get("StorageClass", claim["spec"].get("storageClassName") or "")
        if made_by is not None:
            found.add((made_by["provisioner"], "/".join(key_of(claim))))
    return found


def limits(pod: Object, node: Object, cluster: Cluster) -> Reasons:
    csi_node = cluster.get("CSINode", name_of(node))
    if csi_node is None:
        return []
    there = set().union(*(_attached(other, cluster) for other in cluster.pods_on(name_of(node))))
    for attachment in cluster.all("VolumeAttachment"):
        volume = cluster.get(
            "PersistentVolume", attachment["spec"]["source"].get("persistentVolumeName") or ""
        )
        if attachment["spec"]["nodeName"] == name_of(node) and volume and "csi" in volume["spec"]:
            there.add((volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]))
    new = _attached(pod, cluster) - there
    for driver in csi_node["spec"].get("drivers") or ():
        count = (driver.get("allocatable") or {}).get("count")
        more = sum(one == driver["name"] for one, _ in new)
        used = sum(one == driver["name"] for one, _ in there)
        if count is not None and more and used + more > count:
            return [("node(s) exceed max volume count", True)]
    return []


def binding(pod: Object, node: Object, cluster: Cluster) -> Reasons:
    unresolvable = before_nodes(pod, cluster)
    if unresolvable:
        return [(unresolvable, False)]
    found: Reasons = []
    unbound = []
    for claim in _claims(pod, cluster):
        if not _bound(claim):
            unbound.append(claim)
            continue
        volume = cluster.get("PersistentVolume", claim["spec"]["volumeName"])
        if volume is None:
            found.append(("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", False))
        elif not _reaches(volume, node):
            found.append(("node(s) didn't match PersistentVolume's node affinity", False))
    late: Reasons = []
    taken: set[str] = set()
    to_make = []
    for claim in list(unbound):
        selected = (claim["metadata"].get("annotations") or {}).get("volume.kubernetes.io/selected-node")
        if selected and selected != name_of(node):
            return list(dict.fromkeys([*found, (_NO_VOLUMES, False)]))
        if selected:
            unbound.remove(claim)
            to_make.append(claim)
    for claim in sorted(unbound, key=lambda one: quantity(one["spec"]["resources"]["requests"]["storage"])):
        match = _smallest(claim, node, cluster, taken)
        if match is None:
            to_make.append(claim)
        else:
            taken.add(match)
    for claim in to_make:
        late = late or _made(claim, node, cluster)
    return list(dict.fromkeys([*found, *late]))


def _reaches(volume: Object, node: Object) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or node_selector_matches(required, node)


def _smallest(claim: Object, node: Object, cluster: Cluster, taken: set[str]) -> str | None:
    """The smallest free volume that a claim can have on a node. Volumes meant for the claim come first."""
    spec = claim["spec"]
    asked = quantity(spec["resources"]["requests"]["storage"])
    fitting = []
    for volume in cluster.all("PersistentVolume"):
        its = volume["spec"]
        if (
            name_of(volume) in taken
            or volume["metadata"].get("deletionTimestamp")
            or its.get("storageClassName", "") != (spec.get("storageClassName") or "")
            or its.get("volumeMode", "Filesystem") != spec.get("volumeMode", "Filesystem")
            or not set(spec["accessModes"]) <= set(its["accessModes"])
            or quantity(its["capacity"]["storage"]) < asked
        ):
            continue
        meant = its.get("claimRef")
        if meant:
            if (meant.get("namespace"), meant.get("name")) == key_of(claim) and (
                meant.get("uid") in (None, "", claim["metadata"].get("uid"))
            ):
                return name_of(volume) if _reaches(volume, node) else None
            continue
        if (
            (volume.get("status") or {}).get("phase") != "Available"
            or not _reaches(volume, node)
            or (spec.get("selector") is not None and not selects(spec["selector"], labels_of(volume)))
        ):
            continue
        fitting.append((quantity(its["capacity"]["storage"]), name_of(volume)))
    return min(fitting)[1] if fitting else None


def _made(claim: Object, node: Object, cluster: Cluster) -> Reasons:
    """Whether a volume can be made for a claim on a node."""
    made_by = cluster.get("StorageClass", claim["spec"].get("storageClassName") or "")
    assert made_by is not None
    if made_by["provisioner"] in ("", "kubernetes.io/no-provisioner"):
        return [(_NO_VOLUMES, False)]
    topologies: list[Mapping[str, Any]] = made_by.get("allowedTopologies") or []
    if topologies and not any(
        all(
            labels_of(node).get(one["key"]) in one["values"]
            for one in term.get("matchLabelExpressions") or ()
        )
        for term in topologies
    ):
        return [(_NO_VOLUMES, False)]
    driver = cluster.get("CSIDriver", made_by["provisioner"])
    if driver is None or not driver["spec"].get("storageCapacity"):
        return []
    size = quantity(claim["spec"]["resources"]["requests"]["storage"])
    for capacity in cluster.all("CSIStorageCapacity"):
        room = capacity.get("maximumVolumeSize") or capacity.get("capacity")
        if (
            capacity["storageClassName"] == name_of(made_by)
            and room is not None
            and quantity(room) >= size
            and selects(capacity.get("nodeTopology"), labels_of(node))
        ):
            return []
    return [("node(s) did not have enough free storage", False)]


def zones(pod: Object, node: Object, cluster: Cluster) -> Reasons:
    for claim in _claims(pod, cluster):
        volume = cluster.get("PersistentVolume", claim["spec"].get("volumeName") or "")
        if volume is None or not any(key in labels_of(node) for key in _ZONES):
            continue
        for key in _ZONES:
            if key in labels_of(volume) and labels_of(node).get(key) not in labels_of(volume)[key].split(
                "__"
            ):
                return [("node(s) had no available volume zone", False)]
    return []
