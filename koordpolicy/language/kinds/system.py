"""What is set on a node as a whole: kernel parameters, mechanisms, work that runs outside Kubernetes."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import BANDWIDTH, BOOL, DURATION, INT, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, Identifier, PolicyModel, Text
from koordpolicy.language.kinds.slots import Slot, Value


class SystemTuningSpec(PolicySpec):
    """Kernel parameters of a node. What no rule says is left as it is."""

    cpu_mechanism: Annotated[
        Value,
        Slot(
            STRING,
            "What keeps classes apart on CPUs: `groupIdentity` or `coreSched`.",
            choices=("groupIdentity", "coreSched"),
        ),
    ] = None
    network_mechanism: Annotated[
        Value,
        Slot(
            STRING,
            "What keeps them apart on the network: `tc` or `terway-qos`.",
            choices=("tc", "terway-qos"),
        ),
    ] = None
    network_bandwidth: Annotated[
        Value, Slot(BANDWIDTH, "What the node's network can carry in each direction; 0 for unknown.")
    ] = None
    min_free_factor: Annotated[
        Value,
        Slot(INT, "Memory that the kernel keeps free, in ten-thousandths (`vm.min_free_kbytes`).", minimum=1),
    ] = None
    watermark_scale_factor: Annotated[
        Value,
        Slot(
            INT,
            "How early the kernel begins to reclaim memory (`vm.watermark_scale_factor`).",
            minimum=1,
            maximum=400,
        ),
    ] = None
    reaps_memory: Annotated[
        Value, Slot(BOOL, "Whether memory of control groups that have ended is reclaimed in the background.")
    ] = None
    group_identity: Annotated[
        Value,
        Slot(BOOL, "Whether the kernel knows group identities (`kernel.sched_group_identity_enabled`)."),
    ] = None
    idle_saver_watermark: Annotated[
        Value, Slot(DURATION, "How long a CPU stays idle for its sibling (`kernel.sched_idle_saver_wmark`).")
    ] = None
    features: dict[Identifier, Annotated[Value, Slot(BOOL, "Whether the feature is on.")]] = Field(
        default_factory=dict
    )
    """Features of the kernel's scheduler (`sched_features`) by name."""
    limits_page_cache: Annotated[Value, Slot(BOOL, "Whether limits of the page cache count.")] = None


class CgroupPath(PolicyModel):
    """Where the control group of an application stands."""

    base: Given[
        Annotated[
            str,
            Text("a place", choices=("CgroupRoot", "Kubepods", "KubepodsBurstable", "KubepodsBesteffort")),
        ]
    ] = None
    """Below which group."""
    parent_dir: Annotated[str, Text("a directory", most=4096)] = ""
    """Directory there."""
    relative_path: Annotated[str, Text("a path", most=4096)] = ""
    """Path within that directory."""


class HostApplication(PolicyModel):
    """A program on the node that runs outside Kubernetes."""

    name: Annotated[str, Text("a name of an application", least=1, most=253)]
    """Its name."""
    priority: Annotated[str, Text("a priority band", most=63)] = ""
    """Its priority band, as Koordinator names it, such as `koord-batch`."""
    qos: Given[Annotated[str, Text("a QoS class", choices=("LSE", "LSR", "LS", "BE", "SYSTEM"))]] = None
    """Its QoS class."""
    cgroup_path: Given[CgroupPath] = None
    """Where its control group stands; without it, in a place by its class and name."""


class HostApplicationSetSpec(PolicySpec):
    """The programs on a node that run outside Kubernetes and are to be measured and isolated."""

    applications: list[HostApplication] = Field(default=[], max_length=1000)
    """The applications. The document that wins says all of them."""
