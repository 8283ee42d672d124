"""What best-effort work, and the node as a whole, may ask of disks: limits and weights by device."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from koordpolicy.agent.plan import BEST_EFFORT, Group, Level, Plan, Write
from koordpolicy.agent.strategies.isolation import BE, KIND, ROOT, Isolations
from koordpolicy.language.kinds.isolation import BlockDevice

WRITER: Final = "block-io"
WEIGHT: Final = "blkio.cost.weight"
QOS: Final = "blkio.cost.qos"
MODEL: Final = "blkio.cost.model"
ROOT_GROUP: Final = Group(Level.ROOT)
_FULL_WEIGHT: Final = 100
_LATENCY: Final = 3000
"""Microseconds that the kernel takes where nothing is said."""
_SHARE: Final = 95
"""Percent of requests of which that should hold."""

_THROTTLES: Final[Mapping[str, Callable[[BlockDevice], int | None]]] = {
    "blkio.throttle.read_iops_device": lambda one: one.read_iops,
    "blkio.throttle.write_iops_device": lambda one: one.write_iops,
    "blkio.throttle.read_bps_device": lambda one: one.read_bps,
    "blkio.throttle.write_bps_device": lambda one: one.write_bps,
}

Resolve = Callable[[BlockDevice], str | None]
"""The number of a device's disk, `8:0`; None for one that is not there."""


@dataclass(frozen=True, slots=True)
class DiskIsolation:
    """The policies of a node on its disks."""

    isolations: Isolations

    def plan(self, resolve: Resolve, listed: Mapping[str, AbstractSet[str]]) -> Plan:
        """What is to be written. `listed` are the devices in each file now: those that nobody limits any more are reset.

        A group of which one device is not there is left alone, and that is told.
        """
        writes: list[Write] = []
        notes: list[str] = []
        for name, group in ((BE, BEST_EFFORT), (ROOT, ROOT_GROUP)):
            if self.isolations.about(name) is None:
                continue
            try:
                devices = self._devices(name, resolve)
            except LookupError as problem:
                notes.append(f"{KIND}/{name}.blocks: {problem.args[0]}")
                continue
            lines = _root_lines if name == ROOT else _group_lines
            for file, line in lines(devices, listed):
                writes.append(Write(file, group, line, f"{KIND}/{name}.blocks", WRITER))
        return Plan(tuple(writes), notes=tuple(notes))

    def _devices(self, name: str, resolve: Resolve) -> dict[str, BlockDevice]:
        """The devices of a group by the numbers of their disks; none while it is switched off."""
        if not self.isolations.on(name, "disk"):
            return {}
        roots = {"node": self.isolations.node}
        found = {}
        for block in self.isolations.graph.setting(KIND, name, "blocks", roots) or ():
            number = resolve(block)
            if number is None:
                raise LookupError(f"there is no {block.type or 'device'} `{block.name}` on the node")
            found[number] = block
        return found


Lines = Sequence[tuple[str, str]]


def _group_lines(devices: Mapping[str, BlockDevice], listed: Mapping[str, AbstractSet[str]]) -> Lines:
    lines = []
    for file, said in _THROTTLES.items():
        there = listed.get(file, frozenset())
        lines += [(file, f"{number} 0") for number in sorted(there - devices.keys())]
        for number, block in devices.items():
            limit = said(block) or 0
            if limit or number in there:
                lines.append((file, f"{number} {limit}"))
    there = listed.get(WEIGHT, frozenset())
    lines += [(WEIGHT, f"{number} {_FULL_WEIGHT}") for number in sorted(there - devices.keys())]
    lines += [
        (WEIGHT, f"{number} {block.io_weight_percent or _FULL_WEIGHT}") for number, block in devices.items()
    ]
    return lines


def _root_lines(devices: Mapping[str, BlockDevice], listed: Mapping[str, AbstractSet[str]]) -> Lines:
    lines = [(QOS, f"{number} enable=0") for number in sorted(listed.get(QOS, frozenset()) - devices.keys())]
    for number, block in devices.items():
        lines.append((QOS, f"{number} {_latencies(block)}"))
        lines.append((MODEL, f"{number} {_model(block)}"))
    return lines


def _latencies(block: BlockDevice) -> str:
    said = (
        ("rpct", block.read_latency_percent or _SHARE),
        ("rlat", block.read_latency or _LATENCY),
        ("wpct", block.write_latency_percent or _SHARE),
        ("wlat", block.write_latency or _LATENCY),
    )
    return " ".join(("enable=1 ctrl=user", *(f"{name}={value}" for name, value in said)))


def _model(block: BlockDevice) -> str:
    if not block.enable_user_model:
        return "ctrl=auto"
    said = (
        ("rbps", block.model_read_bps),
        ("rseqiops", block.model_read_seq_iops),
        ("rrandiops", block.model_read_rand_iops),
        ("wbps", block.model_write_bps),
        ("wseqiops", block.model_write_seq_iops),
        ("wrandiops", block.model_write_rand_iops),
    )
    return " ".join(("ctrl=user", *(f"{name}={value}" for name, value in said if value)))
