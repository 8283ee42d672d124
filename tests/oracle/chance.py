"""Random clusters and pods, small and full of what filters look at. The objects are such as API servers take."""

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.oracle.cluster import Cluster, Obj, name

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
DRIVER = "disk.example.com"

_KEYS = (HOSTNAME, ZONE, "rack")
_APPS = ("a", "b", "c")
_NAMESPACES = ("default", "other", "third")


class Chance:
    """Makes objects from one source of randomness."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._made = 0

    def cluster(self, nodes: int = 6, pods: int = 12) -> Cluster:
        """A cluster with its pods on nodes, whether they would fit there or not."""
        found = Cluster()
        for number in range(self._random.randint(1, nodes)):
            found.nodes.append(self.node(f"n{number}"))
        for one in _NAMESPACES:
            team = self._one(({}, {"team": "t"}, {"team": "u"}))
            found.namespaces.append({"metadata": {"name": one, "labels": team}})
        self._storage(found)
        for _ in range(self._random.randint(0, pods)):
            found.pods.append(self.placed(found))
        return found

    def node(self, node: str) -> Obj:
        """A node of that name."""
        found = {HOSTNAME: node}
        if self._maybe(0.8):
            found[ZONE] = self._one(("z1", "z2", "z3"))
        if self._maybe(0.5):
            found["rack"] = self._one(("r1", "r2"))
        if self._maybe(0.5):
            found["pool"] = self._one(("x", "7", "12"))
        taints = []
        if self._maybe(0.15):
            taints.append({"key": self._one(("k", "l")), "effect": self._one(_EFFECTS), "value": "v"})
        allocatable = {
            "cpu": self._one(("2", "8", "16")),
            "memory": "8Gi",
            "pods": self._one(("3", "110", "110")),
        }
        if self._maybe(0.3):
            allocatable["example.com/gpu"] = "2"
        return {
            "metadata": {"name": node, "labels": found},
            "spec": {"taints": taints, "unschedulable": self._maybe(0.05)},
            "status": {"allocatable": allocatable, "capacity": allocatable},
        }

    # --- pods -----------------------------------------------------------------------------------

    def placed(self, cluster: Cluster) -> Obj:
        """A pod on one of the nodes."""
        pod = self.pod(cluster)
        pod["spec"]["nodeName"] = name(self._one(cluster.nodes))
        pod["status"] = {"phase": "Succeeded" if self._maybe(0.05) else "Running"}
        if self._maybe(0.05):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return pod

    def pod(self, cluster: Cluster) -> Obj:
        """A pod with a few wishes."""
        self._made += 1
        found = {"app": self._one(_APPS)}
        if self._maybe(0.4):
            found["rev"] = self._one(("1", "2"))
        spec: Obj = {"schedulerName": "koord-scheduler", "containers": self._containers()}
        if self._maybe(0.15):
            spec["initContainers"] = [
                {**one, "name": f"init-{at}", **self._once({"restartPolicy": "Always"})}
                for at, one in enumerate(self._containers())
            ]
        if self._maybe(0.1):
            spec["overhead"] = {"cpu": "250m"}
        if self._maybe(0.1):
            spec["nodeSelector"] = {ZONE: self._one(("z1", "z2"))}
        if self._maybe(0.3):
            spec["tolerations"] = [self._toleration()]
        affinity: Obj = {}
        if self._maybe(0.12):
            affinity["nodeAffinity"] = {
                _REQUIRED: {
                    "nodeSelectorTerms": [self._node_term() for _ in range(self._random.randint(1, 2))]
                }
            }
        for kind, share in (("podAffinity", 0.25), ("podAntiAffinity", 0.3)):
            if self._maybe(share):
                affinity[kind] = {_REQUIRED: [self._pod_term() for _ in range(self._random.randint(1, 2))]}
        if affinity:
            spec["affinity"] = affinity
        if self._maybe(0.35):
            spec["topologySpreadConstraints"] = self._spread()
        if self._maybe(0.4):
            spec["volumes"] = [self._volume(at, cluster) for at in range(self._random.randint(1, 2))]
        metadata = {
            "name": f"p{self._made}",
            "uid": f"uid-{self._made}",
            # Claims are in one namespace.
            "namespace": "default" if "volumes" in spec else self._one(("default", "other")),
            "labels": found,
        }
        return {"metadata": metadata, "spec": spec}

    def _containers(self) -> list[Obj]:
        found: list[Obj] = []
        for at in range(self._random.randint(1, 2)):
            asked = {"cpu": self._one(("0", "100m", "100m", "500m", "3"))}
            if self._maybe(0.04):
                asked["example.com/gpu"] = "1"
            one: Obj = {"name": f"c{at}", "image": "web", "resources": {"requests": asked}}
            if self._maybe(0.2):
                one["ports"] = [
                    {
                        "containerPort": 80,
                        "hostPort": self._one((80, 53)),
                        **self._once({"protocol": "UDP"}),
                        **self._once({"hostIP": self._one(("10.0.0.1", "10.0.0.2"))}),
                    }
                ]
            found.append(one)
        return found

    def _toleration(self) -> Obj:
        found = {"operator": self._one(("Exists", "Equal")), **self._once({"effect": self._one(_EFFECTS)})}
        if found["operator"] == "Equal" or self._maybe(0.7):
            found["key"] = self._one(("k", "l", "node.kubernetes.io/unschedulable"))
        if found["operator"] == "Equal":
            found["value"] = self._one(("v", "w"))
        return found

    def _node_term(self) -> Obj:
        if self._maybe(0.15):
            return {
                "matchFields": [
                    {"key": "metadata.name", "operator": self._one(("In", "NotIn")), "values": ["n1"]}
                ]
            }
        key, operator = self._one((ZONE, "pool", "rack")), self._one(_OPERATORS)
        values: Obj = {}
        if operator in ("In", "NotIn"):
            values = {"values": self._one((["z1"], ["z1", "r1"], ["x", "z2"]))}
        elif operator in ("Gt", "Lt"):
            key, values = "pool", {"values": ["8"]}
        return {"matchExpressions": [{"key": key, "operator": operator, **values}]}

    def _selector(self) -> Obj:
        if self._maybe(0.1):
            return {}
        if self._maybe(0.6):
            return {"matchLabels": {"app": self._one(_APPS)}}
        operator = self._one(("In", "NotIn", "Exists", "DoesNotExist"))
        values = {"values": [self._one(("1", "2"))]} if operator in ("In", "NotIn") else {}
        return {"matchExpressions": [{"key": "rev", "operator": operator, **values}]}

    def _pod_term(self) -> Obj:
        found: Obj = {"topologyKey": self._one(_KEYS)}
        if self._maybe(0.95):
            found["labelSelector"] = self._selector()
        if self._maybe(0.2):
            found["namespaces"] = [self._one(_NAMESPACES)]
        if self._maybe(0.2):
            found["namespaceSelector"] = self._one(({}, {"matchLabels": {"team": "t"}}))
        return found

    def _spread(self) -> list[Obj]:
        found = []
        for key in self._random.sample(_KEYS, self._random.randint(1, 2)):
            hard = self._maybe(0.8)
            one: Obj = {
                "maxSkew": self._random.randint(1, 2),
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
                **self._once({"nodeAffinityPolicy": self._one(("Honor", "Ignore"))}),
                **self._once({"nodeTaintsPolicy": self._one(("Honor", "Ignore"))}),
            }
            if self._maybe(0.95):
                one["labelSelector"] = self._selector()
                # Servers refuse a key that the selector speaks of, too.
                if "rev" not in str(one["labelSelector"]) and self._maybe(0.2):
                    one["matchLabelKeys"] = ["rev"]
            if hard and self._maybe(0.3):
                one["minDomains"] = self._random.randint(1, 4)
            found.append(one)
        return found

    # --- volumes --------------------------------------------------------------------------------

    def _storage(self, cluster: Cluster) -> None:
        cluster.classes += [
            {"metadata": {"name": "now"}, "provisioner": DRIVER, "volumeBindingMode": "Immediate"},
            {
                "metadata": {"name": "made"},
                "provisioner": DRIVER,
                "volumeBindingMode": "WaitForFirstConsumer",
                **self._once(
                    {
                        "allowedTopologies": [
                            {"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}
                        ]
                    }
                ),
            },
            {
                "metadata": {"name": "local"},
                "provisioner": "kubernetes.io/no-provisioner",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        ]
        cluster.csi_drivers.append(
            {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": self._maybe(0.5)}}
        )
        for at, zone in enumerate(("z1", "z2")):
            cluster.capacities.append(
                {
                    "metadata": {"name": f"capacity-{at}", "namespace": "default"},
                    "storageClassName": "made",
                    "nodeTopology": {"matchLabels": {ZONE: zone}},
                    "capacity": self._one(("1Gi", "5Gi")),
                }
            )
        for node in cluster.nodes:
            if self._maybe(0.5):
                count = self._random.randint(0, 2)
                driver = {"name": DRIVER, "nodeID": name(node), "allocatable": {"count": count}}
                cluster.csi_nodes.append({"metadata": {"name": name(node)}, "spec": {"drivers": [driver]}})
        for at in range(4):
            cluster.volumes.append(self._persistent_volume(f"v{at}", cluster))
        for at in range(5):
            cluster.claims.append(self._persistent_claim(f"claim-{at}", cluster))
        for at in range(self._random.randint(0, 2)):
            attached = {"nodeName": name(self._one(cluster.nodes)), "attacher": DRIVER}
            cluster.attachments.append(
                {
                    "metadata": {"name": f"attachment-{at}"},
                    "spec": {**attached, "source": {"persistentVolumeName": self._one(("v0", "v1"))}},
                }
            )

    def _persistent_volume(self, volume: str, cluster: Cluster) -> Obj:
        spec: Obj = {
            "storageClassName": self._one(("local", "local", "made")),
            "capacity": {"storage": self._one(("1Gi", "2Gi", "5Gi"))},
            "accessModes": ["ReadWriteOnce", *([] if self._maybe(0.5) else ["ReadWriteOncePod"])],
            "csi": {"driver": DRIVER, "volumeHandle": f"handle-{volume}"},
        }
        if self._maybe(0.6):
            expression = self._one(
                (
                    {"key": HOSTNAME, "operator": "In", "values": [name(self._one(cluster.nodes))]},
                    {"key": ZONE, "operator": "In", "values": ["z1", "z3"]},
                    {"key": "rack", "operator": "Exists"},
                )
            )
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        found = {ZONE: self._one(("z1", "z2", "z1__z2"))} if self._maybe(0.5) else {}
        return {
            "metadata": {"name": volume, "labels": found},
            "spec": spec,
            "status": {"phase": "Available"},
        }

    def _persistent_claim(self, claim: str, cluster: Cluster) -> Obj:
        metadata: Obj = {"name": claim, "namespace": "default", "uid": f"uid-{claim}", "annotations": {}}
        spec: Obj = {
            "storageClassName": self._one(("local", "made", "made", "now")),
            "accessModes": [self._one(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))],
            "resources": {"requests": {"storage": self._one(("1Gi", "2Gi", "3Gi"))}},
        }
        free = [one for one in cluster.volumes if "claimRef" not in one["spec"]]
        if free and self._maybe(0.6):
            volume = self._one(free)
            reference = {"namespace": "default", "name": claim, "uid": f"uid-{claim}"}
            volume["spec"]["claimRef"] = reference
            if self._maybe(0.7):
                volume["status"]["phase"] = "Bound"
                spec["volumeName"] = name(volume)
                spec["storageClassName"] = volume["spec"]["storageClassName"]
                metadata["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        elif self._maybe(0.1):
            metadata["annotations"]["volume.kubernetes.io/selected-node"] = name(self._one(cluster.nodes))
        return {"metadata": metadata, "spec": spec}

    def _volume(self, at: int, cluster: Cluster) -> Obj:
        if self._maybe(0.25):
            return {
                "name": f"v{at}",
                **self._one(
                    (
                        {"gcePersistentDisk": {"pdName": "disk", **self._once({"readOnly": True})}},
                        {"awsElasticBlockStore": {"volumeID": "disk"}},
                        {"rbd": {"monitors": ["m1", "m2"], "image": "i", **self._once({"readOnly": True})}},
                        {"rbd": {"monitors": ["m2"], "image": "i"}},
                        {
                            "iscsi": {
                                "targetPortal": "t",
                                "lun": 0,
                                "iqn": "q",
                                **self._once({"readOnly": True}),
                            }
                        },
                    )
                ),
            }
        known = [name(one) for one in cluster.claims]
        claim = "nowhere" if self._maybe(0.03) else self._one(known)
        return {"name": f"v{at}", "persistentVolumeClaim": {"claimName": claim}}

    # --- dice -----------------------------------------------------------------------------------

    def _maybe(self, share: float) -> bool:
        return self._random.random() < share

    def _once(self, found: Obj) -> Obj:
        return found if self._maybe(0.5) else {}

    def _one(self, found: Sequence[Any]) -> Any:
        return self._random.choice(found)

    def sample(self, found: Sequence[Any]) -> Any:
        """One of some things."""
        return self._one(found)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
