"""Persistent volumes as the cluster's controllers would give them to claims, at once and without fail.

A claim gets a volume that is there and suits it, or one that its class makes: when it is created, or, where the class
waits for the first consumer, once the scheduler has said for which node. A volume that is made reaches the nodes of that
node's zone, or the node alone where it has none.
"""

from collections.abc import Callable
from typing import Any

from koordpolicy.algorithms.volume_match import candidates
from koordpolicy.cluster.volumes import Volumes
from koordpolicy.kube import MergePatch, Object
from koordpolicy.kube.memory.store import Store
from koordpolicy.kube.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    Resource,
)
from koordpolicy.model.protocol import BIND_COMPLETED, ZONE
from koordpolicy.model.reading import mapping, objects, text
from koordpolicy.model.volumes import NO_PROVISIONER, ClaimKey, StorageClass, VolumeClaim, read_claim

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_HOSTNAME = "kubernetes.io/hostname"


class VolumeController:
    """Binds the claims of a store. `volumes` is what listeners know of them; `deliver` lets it hear of writes.

    `bound` counts the claims that were bound, `made` the volumes that were made for some of them.
    """

    def __init__(self, store: Store, volumes: Volumes, deliver: Callable[[], None]) -> None:
        self._store = store
        self._deliver = deliver
        self._volumes = volumes
        self._waiting: dict[ClaimKey, None] = {}
        self.bound = 0
        self.made = 0

    def prepare(self) -> None:
        """Let the volumes that are there be available, and give claims without a class the default one."""
        for volume in self._store.list(PERSISTENT_VOLUMES).items:
            phase = "Available" if volume["spec"].get("claimRef") is None else "Bound"
            self._status(PERSISTENT_VOLUMES, volume, phase)
        usual = [
            one["metadata"]["name"]
            for one in self._store.list(STORAGE_CLASSES).items
            if mapping(one["metadata"], "annotations").get(_DEFAULT_CLASS) == "true"
        ]
        for claim in self._store.list(PERSISTENT_VOLUME_CLAIMS).items:
            if usual and read_claim(claim).storage_class is None:
                self._patch(PERSISTENT_VOLUME_CLAIMS, claim, {"spec": {"storageClassName": usual[0]}})
            self._waiting[read_claim(claim).key] = None

    def ephemeral(self, pod: Object) -> bool:
        """Create the claims that a pod brings along; whether there are any."""
        metadata, found = pod["metadata"], False
        owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        for volume in objects(mapping(pod, "spec"), "volumes", "spec"):
            template = mapping(mapping(volume, "ephemeral"), "volumeClaimTemplate")
            if template:
                name = f"{metadata['name']}-{text(volume, 'name')}"
                body = {
                    "metadata": {
                        **mapping(template, "metadata"),
                        "name": name,
                        "ownerReferences": [{**owner, "controller": True}],
                    },
                    "spec": mapping(template, "spec"),
                }
                self._store.create(PERSISTENT_VOLUME_CLAIMS, body, namespace=metadata["namespace"])
                self._waiting[metadata["namespace"], name] = None
                found = True
        return found

    def settle(self) -> None:
        """Bind the claims that can be by now."""
        for claim in [claim for claim in self._waiting if self._is_settled(claim)]:
            del self._waiting[claim]

    def _is_settled(self, claim: ClaimKey) -> bool:
        """Whether a claim is bound, if need be from now on, or gone."""
        namespace, name = claim
        obj = self._store.find(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
        wanted = None if obj is None else read_claim(obj)
        if obj is None or wanted is None or wanted.bound:
            return True
        volume = wanted.volume or self._volume_of(wanted)
        if not volume:
            storage = self._volumes.storage_class(wanted.storage_class or "")
            if storage is None or storage.provisioner in ("", NO_PROVISIONER):
                return False
            if storage.waits and not wanted.selected_node:
                return False
            volume = self._make(wanted, storage, obj)
        self._bind(obj, volume)
        self._deliver()  # so that the next claim does not get the same
        return True

    def _volume_of(self, claim: VolumeClaim) -> str:
        """The volume that is there and is the claim's, or suits one that waits for nobody; empty for none."""
        storage = self._volumes.storage_class(claim.storage_class or "")
        waits = storage is not None and storage.waits
        for volume in self._volumes.of_class(claim.storage_class or ""):
            if volume.claim == claim.key:
                return volume.name
        there = () if waits else candidates(claim, self._volumes.of_class(claim.storage_class or ""))
        return next((volume.name for volume in there), "")

    def _make(self, claim: VolumeClaim, storage: StorageClass, obj: Object) -> str:
        """A volume for a claim; its name."""
        name, spec = f"pvc-{claim.uid}", mapping(obj, "spec")
        body: dict[str, Any] = {
            "capacity": mapping(mapping(spec, "resources"), "requests"),
            "accessModes": spec.get("accessModes"),
            "volumeMode": claim.volume_mode,
            "storageClassName": claim.storage_class,
            "csi": {"driver": storage.provisioner, "volumeHandle": name},
        }
        node = self._store.find(NODES, claim.selected_node) if claim.selected_node else None
        if node is not None:
            labels = mapping(node["metadata"], "labels")
            key = next((one for one in (ZONE, _HOSTNAME) if one in labels), "")
            if key:
                reach = {"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]}]}
                body["nodeAffinity"] = {"required": {"nodeSelectorTerms": [reach]}}
        self._store.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": body})
        self.made += 1
        return name

    def _bind(self, claim: Object, volume: str) -> None:
        metadata = claim["metadata"]
        reference = {
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        found = self._store.find(PERSISTENT_VOLUMES, volume)
        if found is not None:
            self._patch(PERSISTENT_VOLUMES, found, {"spec": {"claimRef": reference}})
            self._status(PERSISTENT_VOLUMES, found, "Bound")
        written = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
        self._patch(PERSISTENT_VOLUME_CLAIMS, claim, written)
        self._status(PERSISTENT_VOLUME_CLAIMS, claim, "Bound")
        self.bound += 1

    def _status(self, resource: Resource, obj: Object, phase: str) -> None:
        self._patch(resource, obj, {"status": {"phase": phase}}, "status")

    def _patch(self, resource: Resource, obj: Object, body: Object, subresource: str = "") -> None:
        metadata = obj["metadata"]
        self._store.patch(
            resource,
            metadata["name"],
            MergePatch(body),
            namespace=metadata.get("namespace"),
            subresource=subresource,
        )
