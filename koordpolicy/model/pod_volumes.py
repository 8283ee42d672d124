"""The volumes of a pod, as far as they matter to where it may go."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from koordpolicy.model.reading import Json, flag, mapping, objects, sequence, text

DiskKey = tuple[str, ...]
"""A disk that nodes attach themselves: its kind and what identifies it."""


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod uses, in its namespace. An `ephemeral` one is made for the pod alone."""

    name: str
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that the pod's spec itself names. `shares` says that readers may share it."""

    key: DiskKey
    read_only: bool = False
    shares: bool = True

    def conflicts(self, read_only: bool) -> bool:
        """Whether it cannot be had where another pod has it."""
        return not (self.shares and self.read_only and read_only)


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """All of them."""

    claims: tuple[ClaimUse, ...] = ()
    disks: tuple[Disk, ...] = ()


NO_VOLUMES: Final = PodVolumes()


def read_pod_volumes(pod: Json, name: str) -> PodVolumes:
    """The volumes of the pod of that name from its JSON. Raises ObjectError."""
    spec = mapping(pod, "spec")
    if not spec.get("volumes"):
        return NO_VOLUMES
    claims: dict[ClaimUse, None] = {}
    disks: dict[Disk, None] = {}
    for volume in objects(spec, "volumes", "spec"):
        at = "spec.volumes"
        if volume.get("persistentVolumeClaim") is not None:
            claim = mapping(volume, "persistentVolumeClaim", at)
            claims[ClaimUse(text(claim, "claimName", at))] = None
        elif volume.get("ephemeral") is not None:
            claims[ClaimUse(f"{name}-{text(volume, 'name', at)}", ephemeral=True)] = None
        for disk in _disks(volume, at):
            disks[disk] = None
    return PodVolumes(tuple(claims), tuple(disks)) if claims or disks else NO_VOLUMES


def _disks(volume: Json, at: str) -> Iterator[Disk]:
    if volume.get("gcePersistentDisk") is not None:
        disk = mapping(volume, "gcePersistentDisk", at)
        yield Disk(("gce", text(disk, "pdName", at)), flag(disk, "readOnly", at))
    if volume.get("awsElasticBlockStore") is not None:
        disk = mapping(volume, "awsElasticBlockStore", at)
        yield Disk(("ebs", text(disk, "volumeID", at)), shares=False)
    if volume.get("iscsi") is not None:
        disk = mapping(volume, "iscsi", at)
        yield Disk(("iscsi", text(disk, "iqn", at)), flag(disk, "readOnly", at))
    if volume.get("rbd") is not None:
        disk = mapping(volume, "rbd", at)
        pool, image = text(disk, "pool", at) or "rbd", text(disk, "image", at)
        # The same image counts as the same disk where the pods share one of its monitors.
        for monitor in sequence(disk, "monitors", at):
            yield Disk(("rbd", str(monitor), pool, image), flag(disk, "readOnly", at))
