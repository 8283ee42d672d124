"""Volumes: what keeps a pod from a node because of them."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from tests.oracle.cluster import Cluster, Obj, labels, name, namespace
from tests.oracle.resources import amount
from tests.oracle.selecting import selects, term_matches

_ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)

_ONE_POD_ONLY = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
    " already in-use by another pod"
)


# --- what a pod uses -----------------------------------------------------------------------------


def claim_names(pod: Obj) -> list[str]:
    found = []
    for volume in pod["spec"].get("volumes") or []:
        if "persistentVolumeClaim" in volume:
            found.append(volume["persistentVolumeClaim"]["claimName"])
        elif "ephemeral" in volume:
            found.append(f"{name(pod)}-{volume['name']}")
    return list(dict.fromkeys(found))


def _claim(cluster: Cluster, where: str, wanted: str) -> Obj | None:
    return next((one for one in cluster.claims if (namespace(one), name(one)) == (where, wanted)), None)


def _volume(cluster: Cluster, wanted: str | None) -> Obj | None:
    return next((one for one in cluster.volumes if name(one) == wanted), None)


def _class(cluster: Cluster, claim: Obj) -> Obj | None:
    wanted = claim["spec"].get("storageClassName")
    return next((one for one in cluster.classes if wanted and name(one) == wanted), None)


def _is_bound(claim: Obj) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    return bool(claim["spec"].get("volumeName")) and "pv.kubernetes.io/bind-completed" in annotations


# --- restrictions --------------------------------------------------------------------------------


def _disks(pod: Obj) -> Iterator[tuple[str, object, bool]]:
    for volume in pod["spec"].get("volumes") or []:
        if "gcePersistentDisk" in volume:
            disk = volume["gcePersistentDisk"]
            yield "gce", disk["pdName"], bool(disk.get("readOnly"))
        if "awsElasticBlockStore" in volume:
            yield "ebs", volume["awsElasticBlockStore"]["volumeID"], False
        if "iscsi" in volume:
            yield "iscsi", volume["iscsi"]["iqn"], bool(volume["iscsi"].get("readOnly"))
        if "rbd" in volume:
            disk = volume["rbd"]
            for monitor in disk["monitors"]:
                key = (monitor, disk.get("pool") or "rbd", disk["image"])
                yield "rbd", key, bool(disk.get("readOnly"))


def restrictions_refuse(cluster: Cluster, pod: Obj, node: Obj) -> tuple[str, bool] | None:
    """A claim for one pod only that another has, and disks that pods on the node have."""
    for wanted in claim_names(pod):
        claim = _claim(cluster, namespace(pod), wanted)
        if claim is None or "ReadWriteOncePod" not in (claim["spec"].get("accessModes") or []):
            continue
        if any(
            namespace(other) == namespace(pod) and wanted in claim_names(other) for other in cluster.placed()
        ):
            return _ONE_POD_ONLY, False
    for kind, key, read_only in _disks(pod):
        for other in cluster.pods_on(name(node)):
            for other_kind, other_key, other_read_only in _disks(other):
                if (kind, key) == (other_kind, other_key) and not (read_only and other_read_only):
                    return "node(s) had no available disk", False
    return None


# --- limits --------------------------------------------------------------------------------------


def _handles(cluster: Cluster, pod: Obj) -> set[tuple[str, str]]:
    """The volumes of a pod as their drivers know them; those to be made by their claims."""
    found = set()
    for wanted in claim_names(pod):
        claim = _claim(cluster, namespace(pod), wanted)
        if claim is None:
            continue
        volume = _volume(cluster, claim["spec"].get("volumeName"))
        if volume is not None:
            if "csi" in volume["spec"]:
                found.add((volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]))
            continue
        storage = _class(cluster, claim)
        if storage is not None and storage.get("provisioner"):
            found.add((storage["provisioner"], f"claim {namespace(pod)}/{wanted}"))
    return found


def limits_refuse(cluster: Cluster, pod: Obj, node: Obj) -> tuple[str, bool] | None:
    """More volumes than a driver attaches to the node."""
    there: set[tuple[str, str]] = set()
    for other in cluster.pods_on(name(node)):
        there |= _handles(cluster, other)
    for attachment in cluster.attachments:
        volume = _volume(cluster, attachment["spec"]["source"]["persistentVolumeName"])
        if attachment["spec"]["nodeName"] == name(node) and volume is not None and "csi" in volume["spec"]:
            there.add((volume["spec"]["csi"]["driver"], volume["spec"]["csi"]["volumeHandle"]))
    new = Counter(driver for driver, handle in _handles(cluster, pod) - there)
    attached = Counter(driver for driver, _ in there)
    for csi_node in cluster.csi_nodes:
        if name(csi_node) != name(node):
            continue
        for driver in csi_node["spec"].get("drivers") or []:
            limit = (driver.get("allocatable") or {}).get("count")
            if (
                limit is not None
                and new[driver["name"]]
                and attached[driver["name"]] + new[driver["name"]] > limit
            ):
                return "node(s) exceed max volume count", False
    return None


# --- binding -------------------------------------------------------------------------------------


def binding_refuses(cluster: Cluster, pod: Obj, node: Obj) -> tuple[str, bool] | None:
    """Claims that have no volume at all, or none that can come to the node."""
    bound, waiting = [], []
    claims = {wanted: _claim(cluster, namespace(pod), wanted) for wanted in claim_names(pod)}
    for wanted, claim in claims.items():
        if claim is None:
            return f'persistentvolumeclaim "{wanted}" not found', True
    for claim in claims.values():
        assert claim is not None
        storage = _class(cluster, claim)
        if _is_bound(claim):
            bound.append(_volume(cluster, claim["spec"]["volumeName"]))
        elif (
            claim["spec"].get("volumeName")
            or storage is None
            or storage.get("volumeBindingMode") != "WaitForFirstConsumer"
        ):
            return "pod has unbound immediate PersistentVolumeClaims", True
        else:
            waiting.append((claim, storage))
    if any(volume is None for volume in bound):
        return "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", True
    if not all(_reaches(volume, node) for volume in bound if volume is not None):
        return "node(s) didn't match PersistentVolume's node affinity", True
    return _match(cluster, waiting, node)


def _match(cluster: Cluster, waiting: list[tuple[Obj, Obj]], node: Obj) -> tuple[str, bool] | None:
    """The smallest claim chooses first, the smallest volume that suits it there; what is left is to be made.

    Claims that go to a node already come first.
    """
    no_volume = "node(s) didn't find available persistent volumes to bind", True
    selected = {name(claim): _selected_node(claim) for claim, _ in waiting}
    if any(one not in ("", name(node)) for one in selected.values()):
        return no_volume
    taken: list[str] = []
    ordered = sorted(waiting, key=lambda one: _size(one[0]))
    to_make = [one for one in ordered if selected[name(one[0])]]
    for claim, storage in ordered:
        if not selected[name(claim)]:
            chosen = _choose(cluster, claim, node, taken)
            if chosen is None:
                to_make.append((claim, storage))
            else:
                taken.append(chosen)
    for claim, storage in to_make:
        if storage.get("provisioner") in (None, "", "kubernetes.io/no-provisioner"):
            return no_volume
        topologies = storage.get("allowedTopologies")
        if topologies and not any(_in_topology(term, node) for term in topologies):
            return no_volume
        if not _has_room(cluster, claim, storage, node):
            return "node(s) did not have enough free storage", True
    return None


def _selected_node(claim: Obj) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    return annotations.get("volume.kubernetes.io/selected-node") or ""


def _choose(cluster: Cluster, claim: Obj, node: Obj, taken: list[str]) -> str | None:
    mine, suiting = [], []
    for volume in cluster.volumes:
        spec = volume["spec"]
        reference = spec.get("claimRef")
        is_mine = reference is not None and (reference["namespace"], reference["name"]) == (
            namespace(claim),
            name(claim),
        )
        if (
            spec.get("storageClassName") != claim["spec"].get("storageClassName")
            or (reference is not None and not is_mine)
            or amount(spec["capacity"]["storage"]) < _size(claim)
            or spec.get("volumeMode", "Filesystem") != claim["spec"].get("volumeMode", "Filesystem")
            or volume["metadata"].get("deletionTimestamp")
        ):
            continue
        if is_mine:
            mine.append(volume)
        elif (
            volume.get("status", {}).get("phase") == "Available"
            and set(claim["spec"].get("accessModes") or []) <= set(spec.get("accessModes") or [])
            and (claim["spec"].get("selector") is None or selects(claim["spec"]["selector"], labels(volume)))
        ):
            suiting.append(volume)
    if mine:
        return name(mine[0]) if _reaches(mine[0], node) else None
    suiting = [one for one in suiting if _reaches(one, node) and name(one) not in taken]
    smallest = min(
        suiting, key=lambda one: (amount(one["spec"]["capacity"]["storage"]), name(one)), default=None
    )
    return None if smallest is None else name(smallest)


def _size(claim: Obj) -> Fraction:
    asked = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0")
    return amount(asked)


def _reaches(volume: Obj, node: Obj) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or any(term_matches(term, node) for term in required["nodeSelectorTerms"])


def _in_topology(term: Obj, node: Obj) -> bool:
    expressions = term.get("matchLabelExpressions") or []
    return bool(expressions) and all(labels(node).get(one["key"]) in one["values"] for one in expressions)


def _has_room(cluster: Cluster, claim: Obj, storage: Obj, node: Obj) -> bool:
    tracked = any(
        name(driver) == storage["provisioner"] and driver["spec"].get("storageCapacity")
        for driver in cluster.csi_drivers
    )
    if not tracked or "storage" not in ((claim["spec"].get("resources") or {}).get("requests") or {}):
        return True
    for one in cluster.capacities:
        limit = one.get("maximumVolumeSize", one.get("capacity"))
        if (
            one["storageClassName"] == name(storage)
            and one.get("nodeTopology") is not None
            and selects(one["nodeTopology"], labels(node))
            and limit is not None
            and amount(limit) >= _size(claim)
        ):
            return True
    return False


# --- zones ---------------------------------------------------------------------------------------


def zone_refuses(cluster: Cluster, pod: Obj, node: Obj) -> tuple[str, bool] | None:
    """Volumes that are labelled with other zones or regions."""
    if not any(label in labels(node) for label in _ZONES):
        return None
    for wanted in claim_names(pod):
        claim = _claim(cluster, namespace(pod), wanted)
        volume = (
            None if claim is None or not _is_bound(claim) else _volume(cluster, claim["spec"]["volumeName"])
        )
        for label in _ZONES if volume is not None else ():
            text = labels(volume).get(label) if volume is not None else None
            if not text:
                continue
            current = label.replace("failure-domain.beta", "topology")
            value = labels(node).get(label, labels(node).get(current))
            if value not in text.split("__"):
                return "node(s) had no available volume zone", True
    return None
