"""What the kernel, caches, disks and networks give to pods of each class."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import BOOL, INT, MEMORY, PERCENT, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Flag, Given, PolicyModel, Text, Whole
from koordpolicy.language.kinds.forms import exactly
from koordpolicy.language.kinds.slots import Slot, Value

_LARGEST = 2**53 - 1
_QUANTITY = r"[0-9]+(?:\.[0-9]+)?(?:[kMGTPE]|[KMGTPE]i)?"


def _switch() -> Slot:
    return Slot(BOOL, "Whether the class is treated so; without it, as a class that nothing is said of.")


def _share(meaning: str) -> Slot:
    return Slot(
        STRING,
        meaning + " A share of the node's bandwidth such as `50%`, or bits per second such as `50M`.",
        pattern=exactly(f"[0-9]+%|{_QUANTITY}"),
        words="a whole percentage such as `50%`, or bits per second such as `50M`",
    )


class CPUIsolationSlots(PolicyModel):
    """How the kernel's scheduler treats the class."""

    enabled: Annotated[Value, _switch()] = None
    identity: Annotated[
        Value,
        Slot(INT, "Group identity (`cpu.bvt_warp_ns`): 2 goes before 0, 0 before -1.", minimum=-1, maximum=2),
    ] = None
    idle: Annotated[Value, Slot(BOOL, "Whether it runs only where nothing else wants to (`cpu.idle`).")] = (
        None
    )
    expels: Annotated[
        Value, Slot(BOOL, "Whether, with core scheduling, it keeps others off the sibling CPUs.")
    ] = None


class PageCache(PolicyModel):
    """How much memory a pod may use for the page cache."""

    enabled: Annotated[Value, Slot(BOOL, "Whether the page cache is limited.")] = None
    limit: Annotated[Value, Slot(PERCENT, "The most, as a share of the pod's memory limit.")] = None
    size: Annotated[Value, Slot(MEMORY, "The most, in bytes; it goes before the share.")] = None
    reclaims_at_once: Annotated[
        Value, Slot(BOOL, "Whether a pod beyond the limit waits until its cache is reclaimed.")
    ] = None


class MemoryIsolationSlots(PolicyModel):
    """How the kernel treats the memory of the class."""

    enabled: Annotated[Value, _switch()] = None
    minimum: Annotated[
        Value, Slot(PERCENT, "Memory that is never reclaimed, as a share of requests (`memory.min`).")
    ] = None
    low: Annotated[
        Value, Slot(PERCENT, "Memory that is reclaimed last, as a share of requests (`memory.low`).")
    ] = None
    throttling: Annotated[
        Value,
        Slot(
            PERCENT,
            "Where between request and limit a container is slowed down (`memory.high`); 0% for nowhere.",
        ),
    ] = None
    watermark: Annotated[
        Value, Slot(PERCENT, "Use of the limit from which memory is reclaimed ahead (`memory.wmark_ratio`).")
    ] = None
    watermark_scale: Annotated[
        Value,
        Slot(
            INT,
            "Size of a step of that, in thousandths (`memory.wmark_scale_factor`).",
            minimum=1,
            maximum=1000,
        ),
    ] = None
    watermark_adjustment: Annotated[
        Value,
        Slot(
            INT,
            "Shift of the node's watermark for the class, in percent (`memory.wmark_min_adj`): below 0 it is reclaimed "
            "later than others.",
            minimum=-25,
            maximum=50,
        ),
    ] = None
    has_priority: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the kernel's choice of what to kill follows priorities (`memory.use_priority_oom`).",
        ),
    ] = None
    priority: Annotated[
        Value, Slot(INT, "Priority in that choice; the lowest goes first.", minimum=0, maximum=12)
    ] = None
    kills_group: Annotated[
        Value, Slot(BOOL, "Whether all processes of a pod are killed together (`memory.oom.group`).")
    ] = None
    page_cache: Given[PageCache] = None
    """How the page cache is limited."""


class CacheIsolationSlots(PolicyModel):
    """Ways of the last-level cache and bandwidth of memory that the class may use."""

    enabled: Annotated[Value, _switch()] = None
    start: Annotated[Value, Slot(PERCENT, "Where its part of the last-level cache begins.")] = None
    end: Annotated[Value, Slot(PERCENT, "Where its part of the last-level cache ends.")] = None
    bandwidth: Annotated[Value, Slot(PERCENT, "Bandwidth of memory that it may use.")] = None


class NetworkShare(PolicyModel):
    """What the class gets of the network in one direction."""

    request: Annotated[Value, _share("What it gets in any case.")] = None
    limit: Annotated[Value, _share("What it gets at most.")] = None


class NetworkIsolationSlots(PolicyModel):
    """What the class gets of the network."""

    enabled: Annotated[Value, _switch()] = None
    ingress: Given[NetworkShare] = None
    """What it may receive."""
    egress: Given[NetworkShare] = None
    """What it may send."""


class BlockDeviceLimits(PolicyModel):
    """One device, and what may be asked of it. What is absent is not limited."""

    name: Annotated[str, Text("a name of a device", most=253)] = ""
    """Its name: of the device, of the volume group, of the persistent volume or of the pod's own one that CSI mounts."""
    type: Given[Annotated[str, Text("a type of device", choices=("device", "volumegroup", "podvolume"))]] = (
        None
    )
    """What is named."""
    read_iops: Given[Annotated[int, Whole(0, _LARGEST)]] = Field(default=None, alias="readIOPS")
    """Reads a second; 0 for any number."""
    write_iops: Given[Annotated[int, Whole(0, _LARGEST)]] = Field(default=None, alias="writeIOPS")
    """Writes a second."""
    read_bps: Given[Annotated[int, Whole(0, _LARGEST)]] = Field(default=None, alias="readBPS")
    """Bytes read a second."""
    write_bps: Given[Annotated[int, Whole(0, _LARGEST)]] = Field(default=None, alias="writeBPS")
    """Bytes written a second."""
    io_weight_percent: Given[Annotated[int, Whole(1, 100)]] = None
    """Share of the device, compared with others."""
    read_latency: Given[Annotated[int, Whole(0, _LARGEST)]] = None
    """Microseconds that reads should take at most."""
    write_latency: Given[Annotated[int, Whole(0, _LARGEST)]] = None
    """Microseconds that writes should take at most."""
    read_latency_percent: Given[Annotated[int, Whole(0, 100)]] = None
    """Share of reads of which that should hold."""
    write_latency_percent: Given[Annotated[int, Whole(0, 100)]] = None
    """Share of writes of which that should hold."""
    enable_user_model: Given[Annotated[bool, Flag()]] = None
    """Whether the device is as the fields below say, rather than as the kernel measures it."""
    model_read_bps: Given[Annotated[int, Whole(1, _LARGEST)]] = Field(default=None, alias="modelReadBPS")
    """Bytes a second that it can read."""
    model_write_bps: Given[Annotated[int, Whole(1, _LARGEST)]] = Field(default=None, alias="modelWriteBPS")
    """Bytes a second that it can write."""
    model_read_seq_iops: Given[Annotated[int, Whole(1, _LARGEST)]] = Field(
        default=None, alias="modelReadSeqIOPS"
    )
    """Sequential reads a second."""
    model_write_seq_iops: Given[Annotated[int, Whole(1, _LARGEST)]] = Field(
        default=None, alias="modelWriteSeqIOPS"
    )
    """Sequential writes a second."""
    model_read_rand_iops: Given[Annotated[int, Whole(1, _LARGEST)]] = Field(
        default=None, alias="modelReadRandIOPS"
    )
    """Random reads a second."""
    model_write_rand_iops: Given[Annotated[int, Whole(1, _LARGEST)]] = Field(
        default=None, alias="modelWriteRandIOPS"
    )
    """Random writes a second."""


class DiskIsolationSlots(PolicyModel):
    """What the class may ask of disks."""

    enabled: Annotated[Value, _switch()] = None


class IsolationSpec(PolicySpec):
    """What one class of pods, or all work of a node together, gets from the kernel and the hardware."""

    group: Annotated[str, Text("a group of pods", choices=("LSR", "LS", "BE", "SYSTEM", "root"))]
    """Which pods: those of a QoS class (LSE pods are as LSR ones), or `root` for everything on the node."""
    cpu: Given[CPUIsolationSlots] = None
    """How the kernel's scheduler treats the class."""
    memory: Given[MemoryIsolationSlots] = None
    """How the kernel treats its memory."""
    cache: Given[CacheIsolationSlots] = None
    """What it gets of the last-level cache and of the bandwidth of memory."""
    network: Given[NetworkIsolationSlots] = None
    """What it gets of the network."""
    disk: Given[DiskIsolationSlots] = None
    """What it gets of disks."""
    blocks: list[BlockDeviceLimits] = Field(default=[], max_length=1000)
    """Devices, and what it may ask of each. The document that wins says all of them."""
