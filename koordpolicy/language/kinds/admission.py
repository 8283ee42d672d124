"""Kinds that the webhook asks: what pods become, and what they must satisfy."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import Field

from koordpolicy.language.cel.types import BOOL, DURATION, INT, PERCENT, STRING, list_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import FreeObject, LabelKey
from koordpolicy.language.kinds.slots import Combine, Slot, Value

_INT32 = 2**31 - 1


class ColocationProfileSpec(PolicySpec):
    """Which pods are drawn into co-location, and what is put into them.

    All profiles that match apply, in order of name, ClusterColocationProfile objects of Koordinator among them; a policy takes
    the place of the object of its name.
    """

    enabled: Annotated[Value, Slot(BOOL, "Whether the profile is in use.", default=True)] = None
    probability: Annotated[
        Value, Slot(PERCENT, "Share of the matching pods that the profile is applied to.", default="100%")
    ] = None
    sampling: Annotated[
        Value,
        Slot(
            STRING,
            "How a draw from 0 to 99 is compared with the probability: `Below` takes pods that draw less, so that "
            "the share is exact; `AtMost` takes an equal draw too, as Koordinator does.",
            choices=("Below", "AtMost"),
            default="Below",
        ),
    ] = None
    qos_class: Annotated[Value, Slot(STRING, "QoS class, by value, to label the pod with.")] = None
    priority_class_name: Annotated[
        Value, Slot(STRING, "PriorityClass to give the pod, with its priority and preemption policy.")
    ] = None
    band: Annotated[
        Value, Slot(STRING, "Priority band to put the pod into, by the band's PriorityClass.")
    ] = None
    sub_priority: Annotated[
        Value, Slot(INT, "Priority within the band.", minimum=-_INT32 - 1, maximum=_INT32)
    ] = None
    scheduler_name: Annotated[Value, Slot(STRING, "Scheduler to place the pod.")] = None
    labels: dict[LabelKey, Annotated[Value, Slot(STRING, "Value of the label.")]] = Field(
        default_factory=dict
    )
    """Labels to set."""
    annotations: dict[LabelKey, Annotated[Value, Slot(STRING, "Value of the annotation.")]] = Field(
        default_factory=dict
    )
    """Annotations to set."""
    copy_labels: dict[LabelKey, Annotated[Value, Slot(STRING, "Key of the label to copy the value to.")]] = (
        Field(default_factory=dict)
    )
    """Labels whose values are copied, by the key they are copied from; a missing one copies as empty."""
    copy_annotations: dict[
        LabelKey, Annotated[Value, Slot(STRING, "Key of the annotation to copy the value to.")]
    ] = Field(default_factory=dict)
    """Annotations whose values are copied, by the key they are copied from; a missing one copies as empty."""
    label_suffixes: dict[LabelKey, Annotated[Value, Slot(STRING, "Text to append to the label's value.")]] = (
        Field(default_factory=dict)
    )
    """Texts appended to labels that are there."""
    patch: Annotated[dict[str, Any], FreeObject()] = Field(default_factory=dict)
    """Strategic merge patch on the pod, applied last."""
    resource_translation: Annotated[
        Value,
        Slot(
            STRING,
            "When pods request the resources of their band in place of native ones: `Matched`, when the "
            "profile selects them, even when its probability spares them, as Koordinator does; `Applied`, when "
            "it is applied to them; `Never`, when it selects them, whatever other profiles say.",
            choices=("Matched", "Applied", "Never"),
            default="Matched",
        ),
    ] = None
    reservations: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether new Reservations get it, too, which `pod` stands for then: by their labels, with the spec of their template. "
            "Labels, annotations, class and sub-priority go to the Reservation, scheduler and priority class to its template, the "
            "patch to the whole; resources keep their names. One that asks for labels of a namespace selects none.",
            default=False,
        ),
    ] = None
    failure_policy: Annotated[
        Value,
        Slot(
            STRING,
            "What happens where the profile cannot be decided about a pod, or nobody answers the API server: `Fail` refuses the "
            "pod, `Ignore` leaves the profile out. The API server knows one answer for all: it ignores only where all of "
            "them do.",
            roots=frozenset(),
            choices=("Fail", "Ignore"),
            default="Fail",
        ),
    ] = None
    timeout: Annotated[
        Value,
        Slot(
            DURATION,
            "How long the API server waits for an answer, from 1 s to 30 s; the longest of all counts.",
            roots=frozenset(),
            default="10s",
        ),
    ] = None


_REQUEST: Final = frozenset({"namespaceObject", "operation", "user", "now"})

ADMITTED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "pods": _REQUEST | {"pod", "oldPod", "quota"},
        "pods/binding": _REQUEST | {"pod", "binding"},
        "nodes": (_REQUEST - {"namespaceObject"}) | {"node", "oldNode"},
        "elasticquotas": _REQUEST | {"quota", "oldQuota", "parentQuota", "siblingQuotas", "childQuotas"},
    }
)
"""Resources that rules speak of, with the roots that expressions may name there."""


class AdmissionRuleSpec(PolicySpec):
    """What an object must satisfy to be admitted."""

    enabled: Annotated[Value, Slot(BOOL, "Whether the rule is in use.", default=True)] = None
    resource: Annotated[
        Value,
        Slot(
            STRING,
            "What the rule is about, as the API names it.",
            choices=tuple(ADMITTED),
            roots=frozenset(),
            default="pods",
        ),
    ] = None
    operations: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Requests that are checked.",
            choices=("CREATE", "UPDATE", "DELETE"),
            roots=frozenset(),
            default=["CREATE", "UPDATE"],
        ),
    ] = None
    require: Annotated[
        Value, Slot(BOOL, "What must be true; where it is false, the rule refuses.", combine=Combine.ALL)
    ] = None
    reason: Annotated[
        Value,
        Slot(
            STRING,
            "Symbol of the refusal, for programs: lower-case words joined by `-`.",
            pattern=r"^(?:[a-z][a-z0-9]*(?:-[a-z0-9]+)*)$(?!\n)",
            words="a symbol of lower-case words joined by `-`, such as `cpu-required`",
        ),
    ] = None
    message: Annotated[Value, Slot(STRING, "What the user is told.")] = None
    enforcement: Annotated[
        Value,
        Slot(
            STRING,
            "`enforce` refuses the request, `warn` admits it with a warning, `audit` only records it.",
            choices=("enforce", "warn", "audit"),
            default="enforce",
        ),
    ] = None
    order: Annotated[
        Value,
        Slot(
            INT,
            "Where the rule stands among all: lower ones are checked and reported first.",
            roots=frozenset(),
            minimum=-1_000_000,
            maximum=1_000_000,
            default=0,
        ),
    ] = None
    failure_policy: Annotated[
        Value,
        Slot(
            STRING,
            "What happens where the rule cannot be decided about an object, or nobody answers the API server: `Fail` refuses the "
            "request, `Ignore` passes over the rule. The API server knows one answer for all: it ignores only where all of "
            "them do.",
            roots=frozenset(),
            choices=("Fail", "Ignore"),
            default="Fail",
        ),
    ] = None
    timeout: Annotated[
        Value,
        Slot(
            DURATION,
            "How long the API server waits for an answer, from 1 s to 30 s; the longest of all counts.",
            roots=frozenset(),
            default="10s",
        ),
    ] = None
