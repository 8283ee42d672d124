"""How much faster a node's CPUs are than others, and how much more of its resources is sold than it has."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, DOUBLE, STRING, list_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value

_NODE = frozenset({"node", "now"})


class CPUNormalization(PolicyModel):
    """How fast a node's CPUs are, compared with those of a common model."""

    enabled: Annotated[
        Value, Slot(BOOL, "Whether the node is told its ratio by annotation.", roots=_NODE, default=True)
    ] = None
    ratio: Annotated[Value, Slot(DOUBLE, "How fast its CPUs are; 1 for a common model.", roots=_NODE)] = None
    minimum: Annotated[
        Value, Slot(DOUBLE, "Least ratio that is believed; a smaller one is an error.", roots=_NODE)
    ] = None
    maximum: Annotated[
        Value, Slot(DOUBLE, "Greatest ratio that is believed; a greater one is an error.", roots=_NODE)
    ] = None
    when_changed_by: Annotated[
        Value,
        Slot(DOUBLE, "Difference that must be exceeded for a ratio to be written anew.", roots=_NODE),
    ] = None


class AmplificationAdmission(PolicyModel):
    """What becomes of the amounts that kubelets report, where they are written."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether allocatable amounts are multiplied by the ratios of the node's annotation.",
            roots=frozenset(),
            default=False,
        ),
    ] = None
    resources: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Resources whose amounts are multiplied and whose amounts before that are kept in an annotation.",
            roots=frozenset(),
            default=["cpu", "memory"],
        ),
    ] = None


class AmplificationSpec(PolicySpec):
    """How much faster a node's CPUs are than others, and how much more of its resources is sold than it has."""

    normalization: Given[CPUNormalization] = None
    """How fast the node's CPUs are, compared with those of a common model."""
    resources: Annotated[
        Value, Slot(list_of(STRING), "Resources of which more is sold than there is.", roots=_NODE)
    ] = None
    ratio: Annotated[
        Value, Slot(DOUBLE, "How many times over a resource is sold.", roots=_NODE | {"resource"})
    ] = None
    minimum: Annotated[
        Value, Slot(DOUBLE, "Least such ratio; with a smaller one nothing is amplified.", roots=_NODE)
    ] = None
    admission: Given[AmplificationAdmission] = None
    """What becomes of the amounts that kubelets report."""
