"""What best-effort work, and the node as a whole, may ask of disks: limits and weights by device."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from koordpolicy.agent.plan import BEST_EFFORT, Group, Level, Plan, Write, pod_group
from koordpolicy.agent.strategies.isolation import BE, KIND, ROOT, Isolations
from koordpolicy.diagnostics import Span
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.language.kinds.isolation import BlockDeviceLimits
from koordpolicy.model.pod_strategies import said_of_blocks
from koordpolicy.model.protocol import BLKIO_QOS
from koordpolicy.model.reading import sequence

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

LIMITS: Final = (
    *(f"blkio.throttle.{kind}_device" for kind in ("read_iops", "write_iops", "read_bps", "write_bps")),
    WEIGHT,
)
"""The files of a group that list devices."""

_THROTTLES: Final[Mapping[str, Callable[[BlockDeviceLimits], int | None]]] = {
    "blkio.throttle.read_iops_device": lambda one: one.read_iops,
    "blkio.throttle.write_iops_device": lambda one: one.write_iops,
    "blkio.throttle.read_bps_device": lambda one: one.read_bps,
    "blkio.throttle.write_bps_device": lambda one: one.write_bps,
}

Resolve = Callable[[BlockDeviceLimits], str | None]
"""The number of a device's disk, `8:0`; None for one that is not there."""


@dataclass(frozen=True, slots=True)
class PodBlocks:
    """A pod, and the devices that its annotation names; None for one that names none any more."""

    uid: str
    name: str
    blocks: Sequence[BlockDeviceLimits] | None


def own_blocks(annotations: Mapping[str, str]) -> list[BlockDeviceLimits] | None:
    """The devices that a pod's annotation names; None without one. Raises ValueError for what is none of it."""
    said = said_of_blocks(annotations)
    if said is None:
        return None
    found = []
    for one in sequence(said, "blocks", BLKIO_QOS):
        if not isinstance(one, Mapping):
            raise ValueError("a block is a mapping with a name")  # noqa: TRY004 - one error for whatever is none of it
        limits = one.get("ioCfg") or {}
        known = {name: value for name, value in one.items() if name in ("name", "type")}
        found.append(BlockDeviceLimits.model_validate({**known, **dict(limits)}))
    return found


def blocks_rule(graph: RuleGraph, group: str, roots: Facts) -> tuple[str, Span] | None:
    """The document that says all devices of a group, and where; None where none does."""
    units = graph.setting_units(KIND, group, "blocks", roots)
    if not units or "blocks" not in units[-1].spec.model_fields_set:
        return None
    return units[-1].id, units[-1].document.positions.key(("spec", "blocks"))


@dataclass(frozen=True, slots=True)
class IsolatedDisks:
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

    def pod_plan(self, pod: PodBlocks, resolve: Resolve, listed: Mapping[str, AbstractSet[str]]) -> Plan:
        """What is to be written for a pod that says itself what it may ask of devices; one that says it no more is reset."""
        try:
            devices = {} if pod.blocks is None else _numbered(pod.blocks, resolve)
        except LookupError as problem:
            return Plan(notes=(f"{pod.name}: {problem.args[0]}",))
        reason = f"what {pod.name} says itself"
        group = pod_group(pod.uid)
        return Plan(
            tuple(Write(file, group, line, reason, WRITER) for file, line in _group_lines(devices, listed))
        )

    def _devices(self, name: str, resolve: Resolve) -> dict[str, BlockDeviceLimits]:
        """The devices of a group by the numbers of their disks; none while it is switched off."""
        if not self.isolations.on(name, "disk"):
            return {}
        roots = {"node": self.isolations.node}
        return _numbered(self.isolations.graph.setting(KIND, name, "blocks", roots) or (), resolve)


def _numbered(blocks: Iterable[BlockDeviceLimits], resolve: Resolve) -> dict[str, BlockDeviceLimits]:
    """Devices by the numbers of their disks. Raises LookupError for one that is not there."""
    found = {}
    for block in blocks:
        number = resolve(block)
        if number is None:
            raise LookupError(f"there is no {block.type or 'device'} `{block.name}` on the node")
        found[number] = block
    return found


Lines = Sequence[tuple[str, str]]


def _group_lines(devices: Mapping[str, BlockDeviceLimits], listed: Mapping[str, AbstractSet[str]]) -> Lines:
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


def _root_lines(devices: Mapping[str, BlockDeviceLimits], listed: Mapping[str, AbstractSet[str]]) -> Lines:
    lines = [(QOS, f"{number} enable=0") for number in sorted(listed.get(QOS, frozenset()) - devices.keys())]
    for number, block in devices.items():
        lines.append((QOS, f"{number} {_latencies(block)}"))
        lines.append((MODEL, f"{number} {_model(block)}"))
    return lines


def _latencies(block: BlockDeviceLimits) -> str:
    said = (
        ("rpct", block.read_latency_percent or _SHARE),
        ("rlat", block.read_latency or _LATENCY),
        ("wpct", block.write_latency_percent or _SHARE),
        ("wlat", block.write_latency or _LATENCY),
    )
    return " ".join(("enable=1 ctrl=user", *(f"{name}={value}" for name, value in said)))


def _model(block: BlockDeviceLimits) -> str:
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
