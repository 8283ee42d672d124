"""Devices and shares of them."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import AMOUNT, BOOL, DYN, INT, STRING, list_of, map_of
from koordpolicy.language.facts.table import Component
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, LabelKey, PolicyModel
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_POD = frozenset({"pod", "namespaceObject", "operation", "now"})
_WEBHOOK = frozenset({Component.WEBHOOK})
_CONTAINER = _POD | {"container"}


class DeviceRequests(PolicyModel):
    """How containers come to ask for devices in the words that the scheduler knows."""

    enabled: Annotated[
        Value, Slot(BOOL, "Whether requests are rewritten.", roots=_POD, default=True, components=_WEBHOOK)
    ] = None
    resources: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Resources by which a container is known to ask for these devices; others are left alone.",
            roots=frozenset(),
            default=[],
            components=_WEBHOOK,
        ),
    ] = None
    expand: dict[
        LabelKey,
        Annotated[
            Value,
            Slot(
                list_of(STRING),
                "Resources to ask for in its place, each in the same amount.",
                roots=_POD,
                components=_WEBHOOK,
            ),
        ],
    ] = Field(default_factory=dict)
    """Resources that stand for several others, by name."""
    derive: dict[
        LabelKey,
        Annotated[
            Value,
            Slot(
                AMOUNT,
                "Amount to ask for; the facts of `container` are those after `expand`.",
                roots=_CONTAINER,
                components=_WEBHOOK,
            ),
        ],
    ] = Field(default_factory=dict)
    """Resources that a container is to ask for, unless it does so itself, by name."""


_NOWHERE: frozenset[str] = frozenset()
_SCHEDULER = frozenset({Component.SCHEDULER})


class DeviceScheduling(PolicyModel):
    """How the scheduler deals devices out. Amounts in percent have 100 for one device."""

    combinations: Annotated[
        Value,
        Slot(
            list_of(list_of(STRING)),
            "Sets of resources by which a pod may ask for these devices, each complete; a pod that asks otherwise is refused. "
            "None: they are not dealt out.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=[],
        ),
    ] = None
    converts: dict[
        LabelKey,
        Annotated[
            Value,
            Slot(
                map_of(STRING, INT),
                "What one of it stands for in other resources.",
                roots=_NOWHERE,
                components=_SCHEDULER,
            ),
        ],
    ] = Field(default_factory=dict)
    """Resources that stand for others, by name."""
    percents: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Resources of which a pod may ask for up to 100, or a multiple of it.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=[],
        ),
    ] = None
    counter: Annotated[
        Value,
        Slot(
            STRING,
            "Resource that says over how many devices the others are spread.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default="",
        ),
    ] = None
    measured: Annotated[
        Value,
        Slot(
            STRING,
            "Resource that says, by 100 for each, how many devices are asked for.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default="",
        ),
    ] = None
    sized: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Resources by whose amount a device is shared where nothing is `measured`; either is filled in by the other.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=[],
        ),
    ] = None
    at_most: dict[
        LabelKey,
        Annotated[
            Value,
            Slot(
                map_of(STRING, INT),
                "Beside it, at most so much of others.",
                roots=_NOWHERE,
                components=_SCHEDULER,
            ),
        ],
    ] = Field(default_factory=dict)
    """Limits of other resources, by the resource beside which they hold."""
    placement: Annotated[
        Value,
        Slot(
            STRING,
            "From where devices are taken: the smallest scope that has enough, one in use before others (`Topology`), or any "
            "(`Anywhere`).",
            choices=("Topology", "Anywhere"),
            roots=_NOWHERE,
            components=_SCHEDULER,
            default="Anywhere",
        ),
    ] = None
    order: Annotated[
        Value,
        Slot(
            DYN,
            "Sort keys of the devices of a node, the first deciding first; the one with the smallest keys is taken, and of "
            "equal ones the first.",
            combine=Combine.ORDER,
            roots=frozenset({"pod", "device"}),
            components=_SCHEDULER,
            many=True,
        ),
    ] = None
    isolation_label: Annotated[
        Value,
        Slot(
            STRING,
            "Label by which a pod says what keeps the pods that share a device apart; it is shared with the pod only on nodes that "
            "have the same. Empty: nobody is asked.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default="",
        ),
    ] = None
    unshared_models: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Models that are given as a whole only, by the label of the Device object.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=[],
        ),
    ] = None
    score: Annotated[
        Value,
        Slot(
            INT,
            "What a node's devices are worth for a pod that asks for some: the score of the plugin DeviceShare with the strategy "
            "`Policy`.",
            roots=frozenset({"pod", "devices"}),
            components=_SCHEDULER,
        ),
    ] = None
    annotations: dict[
        LabelKey,
        Annotated[
            Value,
            Slot(
                STRING,
                "Annotation that a pod gets with its devices, for a vendor's device plugin; empty: it does not get it.",
                roots=frozenset({"pod", "allocated"}),
                components=_SCHEDULER,
            ),
        ],
    ] = Field(default_factory=dict)
    """Annotations beside that which says what a pod was given, by name."""
    templated: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Resources of which a part of a device is given by a template alone.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=[],
        ),
    ] = None
    templates: Annotated[
        Value,
        Slot(
            map_of(STRING, map_of(STRING, map_of(STRING, AMOUNT))),
            "The parts that devices can be divided into, by vendor and model (`huawei-Ascend310P`) and by name: a pod that asks for a "
            "part of a device asks for exactly what one of them has.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default={},
        ),
    ] = None
    zoned: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether devices have a say in which NUMA zones a pod lies that is kept in some, and are taken from these.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=True,
        ),
    ] = None
    zone_score: Annotated[
        Value,
        Slot(
            INT,
            "What zones score, beside 0 to 100 for CPU and memory, on which a pod has the very devices that it would get if zones "
            "did not matter.",
            minimum=0,
            maximum=1_000_000,
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=500,
        ),
    ] = None
    partition_sizes: Annotated[
        Value,
        Slot(
            map_of(STRING, list_of(INT)),
            "How many neighbouring cards are linked, by model, where the Device object has no table of its own.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default={},
        ),
    ] = None
    leftover: Annotated[
        Value,
        Slot(
            map_of(STRING, INT),
            "What a partition of so many cards counts that is left for others; none deals no partitions out.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default={},
        ),
    ] = None
    usual_pods: Annotated[
        Value,
        Slot(
            map_of(STRING, INT),
            "How often pods ask for what, against which fragmentation is measured: CPU in millicores, devices by what is asked "
            "of each in percent, models that will do, as in `{4000m: 3, 4000m 1x50: 10, 8000m 2x100 A100|H100: 1}`.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default={},
        ),
    ] = None
    fragmentation_scale: Annotated[
        Value,
        Slot(
            INT,
            "By how many percent of a device fragmentation has to fall for a score of 73, or to rise for one of 26.",
            minimum=1,
            maximum=1_000_000,
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=100,
        ),
    ] = None
    imbalance: Annotated[
        Value,
        Slot(
            INT,
            "What it counts, in percent of a device that usual pods lose, if all CPU of a node is left and none of its devices, or "
            "the other way round; of smaller differences between what is left of both in proportion.",
            minimum=0,
            maximum=1_000_000,
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=0,
        ),
    ] = None
    best_partitions_first: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether partitions with the greatest score are tried first, not those with the least.",
            roots=_NOWHERE,
            components=_SCHEDULER,
            default=False,
        ),
    ] = None


class DeviceSharingSpec(PolicySpec):
    """What pods may have of a sort of devices, and how they ask for it."""

    requests: Given[DeviceRequests] = None
    """How requests are rewritten where pods are created."""
    scheduling: Given[DeviceScheduling] = None
    """How they are dealt out."""
