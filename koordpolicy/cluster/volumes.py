"""Persistent volumes, claims and what stands beside them, and what pods on nodes use of them.

A plan that is about to be carried out counts already: the volume as the claim's, the claim as on its way to the node,
until the cluster shows it or the plan is given up. Who makes a plan keeps account of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.cluster.attached import Attached, Handle
from koordpolicy.cluster.counts import RowCounts
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.cluster.volume_plan import VolumePlan
from koordpolicy.model.pod_volumes import Disk, PodVolumes
from koordpolicy.model.reading import NOTHING
from koordpolicy.model.volumes import (
    READ_WRITE_ONCE_POD,
    Attachment,
    ClaimKey,
    StorageCapacity,
    StorageClass,
    Volume,
    VolumeClaim,
)

_PROVISIONED: Final = "to be provisioned: "
"""Begins the handle of a volume that is not there yet."""


@dataclass(slots=True)
class _Use:
    """A claim that pods on nodes use: how many pods where, and the volume behind it."""

    rows: RowCounts
    handle: Handle | None = None


class Volumes:
    """All of it. `version` grows with every change that is not a pod's coming or going."""

    def __init__(self, undo: UndoLog | None = None) -> None:
        self._undo = undo or UndoLog()
        self.version = 0
        self.attached = Attached()
        self._volumes: dict[str, Volume] = {}
        self._by_class: dict[str, dict[str, None]] = {}
        self._claims: dict[ClaimKey, VolumeClaim] = {}
        self._classes: dict[str, StorageClass] = {}
        self._tracking: dict[str, bool] = {}
        self._capacities: dict[tuple[str, str], StorageCapacity] = {}
        self._attachments: dict[str, Attachment] = {}
        self._counted: dict[str, tuple[Handle, int]] = {}
        self._limits: dict[str, Mapping[str, int]] = {}
        self._rows: dict[str, int] = {}
        self._uses: dict[ClaimKey, _Use] = {}
        self._disks: dict[tuple[Disk, bool], RowCounts] = {}
        # Pods that share a claim have the same planned for it: it holds as long as one of them does.
        self._planned_volumes: dict[str, list[tuple[VolumePlan, ClaimKey]]] = {}
        self._planned_claims: dict[ClaimKey, list[VolumePlan]] = {}

    def again(self) -> "Volumes":
        """The same objects, no nodes and no pods."""
        found = Volumes(self._undo)
        found.version = self.version + 1
        found._volumes = dict(self._volumes)
        found._by_class = {name: dict(names) for name, names in self._by_class.items()}
        found._claims = dict(self._claims)
        found._classes = dict(self._classes)
        found._tracking = dict(self._tracking)
        found._capacities = dict(self._capacities)
        found._attachments = dict(self._attachments)
        found._limits = dict(self._limits)
        found._planned_volumes = {name: list(plans) for name, plans in self._planned_volumes.items()}
        found._planned_claims = {key: list(plans) for key, plans in self._planned_claims.items()}
        return found

    # --- objects --------------------------------------------------------------------------------

    def set_volume(self, volume: Volume) -> bool:
        """A persistent volume is new or has changed; whether in anything that matters here."""
        before = self._volumes.get(volume.name)
        if before == volume:
            return False
        if before is not None:
            self._by_class[before.storage_class].pop(before.name, None)
        self._volumes[volume.name] = volume
        self._by_class.setdefault(volume.storage_class, {})[volume.name] = None
        if volume.claim is not None:
            self._planned_volumes.pop(volume.name, None)
        self._changed(one.claim for one in (before, volume) if one is not None)
        self._recount(volume.name)
        return True

    def remove_volume(self, name: str) -> None:
        """A persistent volume is gone."""
        before = self._volumes.pop(name, None)
        if before is not None:
            self._by_class[before.storage_class].pop(name, None)
            self._changed([before.claim])
            self._recount(name)

    def set_claim(self, claim: VolumeClaim) -> bool:
        """A claim is new or has changed; whether in anything that matters here."""
        if self._claims.get(claim.key) == claim:
            return False
        self._claims[claim.key] = claim
        if claim.volume or claim.selected_node:
            self._planned_claims.pop(claim.key, None)
        self._changed([claim.key])
        return True

    def remove_claim(self, key: ClaimKey) -> None:
        """A claim is gone."""
        self._claims.pop(key, None)
        self._changed([key])

    def set_class(self, storage: StorageClass) -> bool:
        """A storage class is new or has changed; whether in anything that matters here."""
        if self._classes.get(storage.name) == storage:
            return False
        self._classes[storage.name] = storage
        self._changed(list(self._uses))
        return True

    def remove_class(self, name: str) -> None:
        """A storage class is gone."""
        self._classes.pop(name, None)
        self._changed(list(self._uses))

    def set_tracking(self, driver: str, tracks: bool) -> None:
        """A driver publishes what it can provide, or does not."""
        self._tracking[driver] = tracks
        self.version += 1

    def remove_tracking(self, driver: str) -> None:
        """A driver is gone."""
        self._tracking.pop(driver, None)
        self.version += 1

    def set_capacity(self, capacity: StorageCapacity) -> None:
        """What a class can provide somewhere is new or has changed."""
        self._capacities[capacity.namespace, capacity.name] = capacity
        self.version += 1

    def remove_capacity(self, namespace: str, name: str) -> None:
        """A statement of capacity is gone."""
        self._capacities.pop((namespace, name), None)
        self.version += 1

    def set_limits(self, node: str, limits: Mapping[str, int]) -> bool:
        """A node takes so many volumes of each driver; whether that is new."""
        if self._limits.get(node) == limits:
            return False
        self.version += 1
        row = self._rows.get(node)
        if row is not None:
            for driver in (*self._limits.get(node, ()), *limits):
                self.attached.limit(driver, row, limits.get(driver))
        self._limits[node] = limits
        return True

    def remove_limits(self, node: str) -> None:
        """Nothing is known of a node's limits any more."""
        self.set_limits(node, NOTHING)
        self._limits.pop(node, None)

    def set_attachment(self, attachment: Attachment) -> bool:
        """A volume is attached to a node; whether that is new."""
        if self._attachments.get(attachment.name) == attachment:
            return False
        self.version += 1
        self._uncount(attachment.name)
        self._attachments[attachment.name] = attachment
        self._count(attachment)
        return True

    def remove_attachment(self, name: str) -> None:
        """A volume is not attached any more."""
        self.version += 1
        self._uncount(name)
        self._attachments.pop(name, None)

    # --- nodes ----------------------------------------------------------------------------------

    def node_came(self, name: str, row: int) -> None:
        """A node has a row."""
        self._rows[name] = row
        for driver, limit in self._limits.get(name, NOTHING).items():
            self.attached.limit(driver, row, limit)
        for attachment in self._attachments.values():
            if attachment.node == name:
                self._count(attachment)

    def node_left(self, name: str, row: int, last: int, moved: str) -> None:
        """A node's row is gone, and the last row, of the node `moved`, has taken its number."""
        for attachment in self._attachments.values():
            if attachment.node == name:
                self._uncount(attachment.name)
        del self._rows[name]
        if moved != name:
            self._rows[moved] = row
            for counted, (handle, at) in list(self._counted.items()):
                if at == last:
                    self._counted[counted] = (handle, row)
        self.attached.drop(row, last)
        for use in self._uses.values():
            use.rows.drop(row, last)
        for counts in self._disks.values():
            counts.drop(row, last)

    # --- pods -----------------------------------------------------------------------------------

    def add_pod(self, namespace: str, volumes: PodVolumes, row: int, by: int = 1) -> None:
        """A pod is on a node; with `by` -1 it is not any more."""
        for claim in volumes.claims:
            self._use((namespace, claim.name), row, by)
        for disk in volumes.disks:
            counts = self._disks.setdefault((disk, disk.read_only), RowCounts())
            counts.add(row, by)
            if not counts:
                del self._disks[disk, disk.read_only]

    def _use(self, key: ClaimKey, row: int, by: int) -> None:
        use = self._uses.get(key)
        if use is None:
            use = self._uses[key] = _Use(RowCounts(), handle=self._handle(key))
        use.rows.add(row, by)
        if use.handle is not None:
            self.attached.add(use.handle, row, by)
        if not use.rows:
            del self._uses[key]

    # --- bindings that are on their way ---------------------------------------------------------

    def plan(self, plan: VolumePlan) -> None:
        """Volumes and claims are about to be bound like this."""
        self._note_plans(plan)
        self.version += 1
        for bind in plan.binds:
            self._planned_volumes.setdefault(bind.volume, []).append((plan, bind.claim))
        for claim in plan.claims:
            self._planned_claims.setdefault(claim, []).append(plan)

    def give_up(self, plan: VolumePlan) -> None:
        """They are not any more. What the cluster has shown meanwhile stays as it is."""
        self._note_plans(plan)
        self.version += 1
        for bind in plan.binds:
            volumes = [one for one in self._planned_volumes.pop(bind.volume, ()) if one[0] is not plan]
            if volumes:
                self._planned_volumes[bind.volume] = volumes
        for claim in plan.claims:
            plans = [one for one in self._planned_claims.pop(claim, ()) if one is not plan]
            if plans:
                self._planned_claims[claim] = plans

    def _note_plans(self, plan: VolumePlan) -> None:
        """Note what is planned of the volumes and claims of a plan, before that changes."""
        if not self._undo.depth:
            return
        volumes, claims = self._planned_volumes, self._planned_claims
        self._planned_volumes, self._planned_claims = dict(volumes), dict(claims)
        for bind in plan.binds:
            if bind.volume in volumes:
                self._planned_volumes[bind.volume] = [*volumes[bind.volume]]
        for claim in plan.claims:
            if claim in claims:
                self._planned_claims[claim] = [*claims[claim]]

        def undo() -> None:
            self._planned_volumes, self._planned_claims = volumes, claims
            self.version += 1

        self._undo.note(undo)

    @property
    def planned(self) -> tuple[VolumePlan, ...]:
        """The plans that still count for something."""
        found = [one for plans in self._planned_claims.values() for one in plans]
        found += [one for plans in self._planned_volumes.values() for one, _ in plans]
        return tuple({id(one): one for one in found}.values())

    # --- answers --------------------------------------------------------------------------------

    def shown(self, key: ClaimKey) -> VolumeClaim | None:
        """A claim as the cluster shows it."""
        return self._claims.get(key)

    def claim(self, key: ClaimKey) -> VolumeClaim | None:
        """A claim, as it is or is about to be."""
        found = self._claims.get(key)
        plans = self._planned_claims.get(key)
        return found if found is None or not plans else replace(found, selected_node=plans[-1].node)

    def volume(self, name: str) -> Volume | None:
        """A persistent volume as it is or is about to be."""
        found = self._volumes.get(name)
        plans = self._planned_volumes.get(name)
        return found if found is None or not plans else replace(found, claim=plans[-1][1], claim_uid="")

    def of_class(self, name: str) -> Iterator[Volume]:
        """The persistent volumes of a class."""
        for one in self._by_class.get(name, ()):
            found = self.volume(one)
            if found is not None:
                yield found

    def storage_class(self, name: str) -> StorageClass | None:
        """A storage class."""
        return self._classes.get(name)

    def capacities(self, storage: StorageClass) -> list[StorageCapacity] | None:
        """What can be provided of a class, place by place; None where that is not published."""
        if not self._tracking.get(storage.provisioner, False):
            return None
        return [one for one in self._capacities.values() if one.storage_class == storage.name]

    def used(self, key: ClaimKey) -> bool:
        """Whether a pod on any node uses a claim."""
        return key in self._uses

    def held_alone(self, namespace: str, volumes: PodVolumes) -> bool:
        """Whether one of the claims is for one pod only, and another pod has it."""
        for one in volumes.claims:
            claim = self._claims.get((namespace, one.name))
            if claim is not None and READ_WRITE_ONCE_POD in claim.modes and self.used(claim.key):
                return True
        return False

    def users(self, disk: Disk) -> Iterator[RowCounts]:
        """The nodes with pods whose disks conflict with one."""
        for (other, read_only), counts in self._disks.items():
            if other.key == disk.key and disk.conflicts(read_only):
                yield counts

    def handles(self, namespace: str, volumes: PodVolumes) -> tuple[Handle, ...]:
        """The volumes behind a pod's claims, as far as drivers count them."""
        found: dict[Handle, None] = {}
        for one in volumes.claims:
            handle = self._handle((namespace, one.name))
            if handle is not None:
                found[handle] = None
        return tuple(found)

    # --- inner workings -------------------------------------------------------------------------

    def _changed(self, keys: Iterable[ClaimKey | None]) -> None:
        """What is behind some claims may be another volume now."""
        self.version += 1
        for key in keys:
            use = None if key is None else self._uses.get(key)
            if key is None or use is None:
                continue
            handle = self._handle(key)
            if handle != use.handle:
                for row in list(use.rows.rows()):
                    if use.handle is not None:
                        self.attached.add(use.handle, row, -use.rows.get(row))
                    if handle is not None:
                        self.attached.add(handle, row, use.rows.get(row))
                use.handle = handle

    def _handle(self, key: ClaimKey) -> Handle | None:
        """The volume behind a claim; one that is not there yet is its class' driver's."""
        claim = self._claims.get(key)
        if claim is None:
            return None
        volume = self._volumes.get(claim.volume) if claim.volume else None
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver else None
        storage = self._classes.get(claim.storage_class or "")
        if storage is None or not storage.provisioner:
            return None
        return storage.provisioner, f"{_PROVISIONED}{claim.namespace}/{claim.name}"

    def _count(self, attachment: Attachment) -> None:
        row, volume = self._rows.get(attachment.node), self._volumes.get(attachment.volume)
        if row is not None and volume is not None and volume.driver:
            handle = (volume.driver, volume.handle)
            self._counted[attachment.name] = (handle, row)
            self.attached.add(handle, row)

    def _uncount(self, name: str) -> None:
        counted = self._counted.pop(name, None)
        if counted is not None:
            self.attached.add(counted[0], counted[1], -1)

    def _recount(self, volume: str) -> None:
        """A volume came, changed or went: so do its attachments."""
        for attachment in self._attachments.values():
            if attachment.volume == volume:
                self._uncount(attachment.name)
                self._count(attachment)
