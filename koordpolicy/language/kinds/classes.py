"""What classes of service and bands of priority there are."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, INT, STRING, list_of, map_of
from koordpolicy.language.kinds.base import Declaration
from koordpolicy.language.kinds.fields import AnyText, Given, PolicyModel
from koordpolicy.language.kinds.forms import exactly
from koordpolicy.language.kinds.slots import Slot, Value

_NOWHERE: frozenset[str] = frozenset()
_INT32 = 2**31 - 1
_NAME = r"^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)$(?!\n)"

_RESOURCE = exactly(
    "(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


class QoSClassSpec(Declaration):
    """A class of service: how it is written, where it is derived, what it may do."""

    value: Annotated[
        Value,
        Slot(
            STRING,
            "Value of the QoS label; the document's name when absent.",
            roots=_NOWHERE,
            pattern=_NAME,
            words="a label value, such as `LSR`",
        ),
    ] = None
    kubernetes: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Kubernetes QoS classes whose pods are of this class when they carry no known label.",
            roots=_NOWHERE,
            choices=("Guaranteed", "Burstable", "BestEffort"),
        ),
    ] = None
    permitted_bands: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Names of the priority bands that pods labelled with this class may have; `none` for no band.",
            roots=_NOWHERE,
        ),
    ] = None
    default_band: Annotated[
        Value,
        Slot(
            STRING,
            "Band of its pods that have none by label or priority; `none` for no band.",
            roots=_NOWHERE,
        ),
    ] = None
    whole_cpus: Annotated[
        Value,
        Slot(BOOL, "Whether its pods must request a whole number of CPUs, at least one.", roots=_NOWHERE),
    ] = None
    cpu_binding: Annotated[
        Value,
        Slot(
            STRING,
            "What CPUs its pods get: `Exclusive` ones nobody else uses, `Bound` ones that lower classes may "
            "share, those of the `Shared` pool, or `None` of their own.",
            roots=_NOWHERE,
            choices=("Exclusive", "Bound", "Shared", "None"),
        ),
    ] = None
    protection_order: Annotated[
        Value,
        Slot(
            INT,
            "Who is protected from whom: higher classes are, at the cost of lower ones. Where rules of evictions put two pods neither "
            "before nor after each other, the one of the lower class goes.",
            roots=_NOWHERE,
            minimum=-1000,
            maximum=1000,
        ),
    ] = None
    description: AnyText = ""
    """What the class is for."""


class BandRange(PolicyModel):
    """The priorities of a band, both ends included."""

    from_: Annotated[
        Value, Slot(INT, "Lowest priority of the band.", roots=_NOWHERE, minimum=-_INT32 - 1, maximum=_INT32)
    ] = None
    to: Annotated[
        Value, Slot(INT, "Highest priority of the band.", roots=_NOWHERE, minimum=-_INT32 - 1, maximum=_INT32)
    ] = None


class BandPriorityClass(PolicyModel):
    """The PriorityClass object of a band."""

    name: Annotated[
        Value, Slot(STRING, "Name of the PriorityClass, and value of the band's label.", roots=_NOWHERE)
    ] = None
    value: Annotated[
        Value,
        Slot(
            INT, "Priority that the PriorityClass gives.", roots=_NOWHERE, minimum=-_INT32 - 1, maximum=_INT32
        ),
    ] = None
    preemption_policy: Annotated[
        Value,
        Slot(
            STRING,
            "Whether its pods may preempt others.",
            roots=_NOWHERE,
            choices=("PreemptLowerPriority", "Never"),
        ),
    ] = None
    kept: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether the manager makes the PriorityClass where a value is said, and mends it; one that somebody else has made "
            "stays as it is.",
            roots=_NOWHERE,
            default=True,
        ),
    ] = None


class BandResources(PolicyModel):
    """Which resources the pods of a band use."""

    mode: Annotated[
        Value,
        Slot(
            STRING,
            "`Native` keeps cpu and memory, `Translated` renames them by `names`, `Unavailable` means that "
            "the band has no resources of its own.",
            roots=_NOWHERE,
            choices=("Native", "Translated", "Unavailable"),
        ),
    ] = None
    names: Annotated[
        Value,
        Slot(
            map_of(STRING, STRING),
            "Name of the resource that stands for each native one.",
            roots=_NOWHERE,
            pattern=_RESOURCE,
            words="a resource's name, such as `kubernetes.io/batch-cpu`",
        ),
    ] = None
    announced: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether an annotation repeats them, for agents that see containers but not the pod's spec.",
            roots=_NOWHERE,
            default=False,
        ),
    ] = None


class PriorityBandSpec(Declaration):
    """A band of priorities: its range, its PriorityClass, and the resources its pods use."""

    range: Given[BandRange] = None
    """The priorities of the band."""
    default: Annotated[
        Value,
        Slot(
            INT,
            "Priority of the band's pods that have none.",
            roots=_NOWHERE,
            minimum=-_INT32 - 1,
            maximum=_INT32,
        ),
    ] = None
    priority_class: Given[BandPriorityClass] = None
    """The PriorityClass of the band."""
    resources: Given[BandResources] = None
    """Which resources its pods use."""
    gap_below: Annotated[
        Value,
        Slot(
            STRING,
            "Whether priorities between this band and the next lower one may belong to no band.",
            roots=_NOWHERE,
            choices=("Permitted", "Forbidden"),
            default="Forbidden",
        ),
    ] = None
    description: AnyText = ""
    """What the band is for."""
