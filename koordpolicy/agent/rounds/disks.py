"""Rounds of disks: which devices there are, which are limited now, and which pods speak for themselves."""

from collections.abc import Callable, Mapping
from typing import Final

from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.node_kernel import NoSuchGroup
from koordpolicy.agent.node_pods import NodePod
from koordpolicy.agent.plan import BEST_EFFORT, Group, Plan, joined, pod_group
from koordpolicy.agent.strategies.disk_isolation import (
    LIMITS,
    QOS,
    ROOT_GROUP,
    IsolatedDisks,
    PodBlocks,
    Resolve,
    own_blocks,
)
from koordpolicy.agent.strategies.isolation import BE, ROOT, Isolations
from koordpolicy.language.kinds.isolation import BlockDeviceLimits
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.readings.block import (
    BlockDevices,
    DiskOrPart,
    limited_of,
    read_block_devices,
    read_mounts,
)
from koordpolicy.model.protocol import BLKIO_QOS, QOS_CLASS
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.time import NANOSECONDS

_RENEWED: Final = 10 * NANOSECONDS
"""After so long devices are looked for anew: they come and go seldom, and looking reads many files."""
_GROUP, _VOLUME = "volumegroup", "podvolume"


class DiskRounds:
    """Keeps the devices of the node for a while, and which pods were limited: those are reset when they say it no more."""

    def __init__(self) -> None:
        self._devices = BlockDevices({})
        self._mounts: Mapping[str, str] = {}
        self._looked = -_RENEWED
        self._limited: frozenset[str] = frozenset()

    def plan(self, frame: NodeFrame) -> Plan:
        """What is written for best-effort work, the node, and pods with an annotation of their own."""
        isolations = Isolations(frame.graph, frame.record, frame.now)
        disks = IsolatedDisks(isolations)
        pods = {uid: one for uid, one in frame.pods.items() if _speaks(one)}
        own = self._limited & frame.pods.keys() | pods.keys()
        spoken = [name for name in (BE, ROOT) if isolations.about(name) is not None]
        if not spoken and not own:
            return Plan()
        notes = self._look(frame)
        plans = [Plan(notes=notes)]
        if spoken:
            listed = {**_listed(frame, BEST_EFFORT, LIMITS), **_listed(frame, ROOT_GROUP, (QOS,))}
            plans.append(disks.plan(self._resolve(""), listed))
        plans += [self._pod(frame, disks, uid, pods.get(uid)) for uid in sorted(own)]
        self._limited = frozenset(pods)
        return joined(plans)

    def _pod(self, frame: NodeFrame, disks: IsolatedDisks, uid: str, pod: NodePod | None) -> Plan:
        whole = frame.pods[uid].pod
        name = f"{whole.namespace}/{whole.name}"
        try:
            blocks = None if pod is None else own_blocks(pod.pod.annotations)
        except (ObjectError, ValueError) as problem:
            return Plan(notes=(f"{name}: {BLKIO_QOS}: {problem}",))
        said = PodBlocks(uid, name, blocks)
        return disks.pod_plan(said, self._resolve(uid), _listed(frame, pod_group(uid), LIMITS))

    def _look(self, frame: NodeFrame) -> tuple[str, ...]:
        if frame.monotonic - self._looked < _RENEWED:
            return ()
        self._looked = frame.monotonic
        try:
            self._devices = read_block_devices(frame.kernel.root)
        except KernelFileError as problem:
            self._devices = BlockDevices({})
            return (f"block devices: {problem}",)
        try:
            self._mounts = read_mounts(frame.kernel.root)
        except KernelFileError:
            self._mounts = {}  # volumes of pods are not told then, and that is noted of each
        return ()

    def _resolve(self, uid: str) -> Resolve:
        by_type: Mapping[str, Callable[[BlockDeviceLimits], str | None]] = {
            _GROUP: lambda block: _number(self._devices.disk_of_group(block.name)),
            _VOLUME: lambda block: self._volume(uid, block.name),
        }

        def resolve(block: BlockDeviceLimits) -> str | None:
            found = by_type.get(block.type or "")
            return _number(self._devices.disk(block.name)) if found is None else found(block)

        return resolve

    def _volume(self, uid: str, name: str) -> str | None:
        """The disk below what is mounted for a pod as a CSI volume of that name."""
        end = f"/pods/{uid}/volumes/kubernetes.io~csi/{name}/mount"
        mounted = next((number for point, number in self._mounts.items() if point.endswith(end)), None)
        return None if mounted is None else _number(self._devices.disk(mounted))


def _number(device: DiskOrPart | None) -> str | None:
    return None if device is None else device.number


def _speaks(one: NodePod) -> bool:
    return (
        one.pod.phase == "Running"
        and bool(one.pod.labels.get(QOS_CLASS))
        and BLKIO_QOS in one.pod.annotations
    )


def _listed(frame: NodeFrame, group: Group, files: tuple[str, ...]) -> dict[str, frozenset[str]]:
    """The devices in each file of a group now; none in files that are not there."""
    try:
        path = frame.kernel.target_of(group, frame.pods)
    except NoSuchGroup:
        return {}
    found = {}
    for file in files:
        try:
            place, content = frame.kernel.files.located(file, path)
        except KernelFileError:
            continue
        found[file] = limited_of(place, content.decode(errors="replace"))
    return found
