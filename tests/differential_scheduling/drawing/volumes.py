"""Volumes: classes, bound and free persistent volumes, claims, attach limits."""

from typing import Any

from tests.differential_scheduling.case import Object
from tests.differential_scheduling.drawing.chance import HOSTNAME, ZONE, ZONES, Chance

_DRIVERS = ("disk.example.com", "files.example.com")


class Storage:
    """What a cluster has of it. `objects` grow as pods are given claims."""

    def __init__(self, chance: Chance, tag: str, nodes: list[str]) -> None:
        self._chance = chance
        self._tag = tag
        self._nodes = nodes
        self._shared: list[tuple[str, str]] = []
        self._alone: list[tuple[str, str]] = []
        self._count = 0
        self.objects: list[Object] = [
            self._class("now", _DRIVERS[0], "Immediate"),
            self._class("late", _DRIVERS[0], "WaitForFirstConsumer"),
            self._class("zoned", _DRIVERS[1], "WaitForFirstConsumer", chance.some(ZONES, 2)),
            self._class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        ]
        self.objects += [self._limits(name) for name in nodes if chance.happens(0.4)]
        for _ in range(chance.randint(0, 4)):
            self._volume("local", self._affinity(), status="Available")
        if chance.happens(0.3):
            self._track()

    def _class(self, name: str, provisioner: str, mode: str, zones: list[str] | None = None) -> Object:
        made: Object = {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": f"{self._tag}-{name}"}, "provisioner": provisioner, "volumeBindingMode": mode,
        }  # fmt: skip
        if zones:
            made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": zones}]}]
        return made

    def _limits(self, node: str) -> Object:
        chance = self._chance
        drivers: list[dict[str, Any]] = []
        for name in _DRIVERS:
            one: dict[str, Any] = {"name": name, "nodeID": node, "topologyKeys": [ZONE]}
            if chance.happens(0.8):
                one["allocatable"] = {"count": chance.choice((1, 2, 3))}
            drivers.append(one)
        return {
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
            "spec": {"drivers": drivers},
        }  # fmt: skip

    def _track(self) -> None:
        """One driver tells how much it has where."""
        chance = self._chance
        self.objects.append(
            {
                "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": _DRIVERS[0]},
                "spec": {"storageCapacity": True, "attachRequired": True},
            }
        )  # fmt: skip
        for zone in chance.some(ZONES, 3):
            one: Object = {
                "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
                "metadata": {"name": f"{self._tag}-{zone}", "namespace": "alpha"},
                "storageClassName": f"{self._tag}-late", "nodeTopology": {"matchLabels": {ZONE: zone}},
                "capacity": chance.choice(("1Gi", "5Gi", "50Gi")),
            }  # fmt: skip
            if chance.happens(0.3):
                one["maximumVolumeSize"] = chance.choice(("1Gi", "4Gi"))
            self.objects.append(one)

    def _affinity(self) -> dict[str, Any] | None:
        chance = self._chance
        if chance.happens(0.2):
            return None
        if chance.happens(0.5):
            one = {"key": HOSTNAME, "operator": "In", "values": chance.some(self._nodes, 2)}
        else:
            one = {"key": ZONE, "operator": "In", "values": chance.some(ZONES, 2)}
        return {"required": {"nodeSelectorTerms": [{"matchExpressions": [one]}]}}

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{self._tag}-{kind}{self._count}"

    def _volume(self, of: str, affinity: dict[str, Any] | None, status: str, **more: Any) -> Object:
        chance, name = self._chance, self._name("v")
        spec: dict[str, Any] = {
            "capacity": {"storage": chance.choice(("2Gi", "5Gi", "10Gi"))}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": f"{self._tag}-{of}", "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": chance.choice(_DRIVERS), "volumeHandle": f"handle-{name}"}, **more,
        }  # fmt: skip
        if affinity:
            spec["nodeAffinity"] = affinity
        labels = {}
        if chance.happens(0.4):
            labels[ZONE] = "__".join(chance.some(ZONES, 2))
        if chance.happens(0.3):
            labels["media"] = chance.choice(("fast", "slow"))
        made: Object = {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels},
            "spec": spec, "status": {"phase": status},
        }  # fmt: skip
        self.objects.append(made)
        return made

    def add_claims(self, pod: Object, used_by: Object | None = None) -> None:
        """Give a pod one or two volumes. A pod that is on a node has bound ones."""
        chance, namespace = self._chance, pod["metadata"]["namespace"]
        found = []
        for _ in range(chance.choice((1, 1, 2))):
            known = self._shared if used_by is not None else [*self._shared, *self._alone]
            shared = [name for space, name in known if space == namespace]
            if shared and chance.happens(0.35):
                found.append(chance.choice(shared))
            else:
                found.append(self._claim(namespace, bound=used_by is not None or chance.happens(0.5)))
        disks = [one for one in pod["spec"].get("volumes", ()) if "persistentVolumeClaim" not in one]
        pod["spec"]["volumes"] = [
            *disks,
            *(
                {"name": f"data{at}", "persistentVolumeClaim": {"claimName": name}}
                for at, name in enumerate(dict.fromkeys(found))
            ),
        ]

    def _claim(self, namespace: str, *, bound: bool) -> str:
        chance, name = self._chance, self._name("claim")
        if not bound and chance.happens(0.06):
            return name  # nobody made it
        of = (
            chance.choice(("now", "late"))
            if bound
            else chance.choice(("late", "late", "zoned", "local", "local", "now"))
        )
        mode = "ReadWriteOncePod" if bound and chance.happens(0.3) else "ReadWriteOnce"
        spec: dict[str, Any] = {
            "accessModes": [mode], "storageClassName": f"{self._tag}-{of}", "volumeMode": "Filesystem",
            "resources": {"requests": {"storage": chance.choice(("1Gi", "3Gi", "8Gi"))}},
        }  # fmt: skip
        made: Object = {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "annotations": {}},
            "spec": spec, "status": {"phase": "Bound" if bound else "Pending"},
        }  # fmt: skip
        if bound:
            made["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
            if chance.happens(0.05):
                spec["volumeName"] = f"{self._tag}-gone"
            else:
                reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name}
                volume = self._volume(of, self._affinity(), "Bound", claimRef=reference, accessModes=[mode])
                spec["volumeName"] = volume["metadata"]["name"]
            # What only one pod may use is used by one at most; the next may ask for it.
            (self._alone if mode == "ReadWriteOncePod" else self._shared).append((namespace, name))
        elif chance.happens(0.15):
            spec["selector"] = {"matchLabels": {"media": "fast"}}
        elif chance.happens(0.1) and of != "now":
            made["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = chance.choice(self._nodes)
        if chance.happens(0.5) and not bound:
            self._shared.append((namespace, name))
        self.objects.append(made)
        return name
