"""What nodes keep for programs outside Kubernetes."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, CPU, MEMORY, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.slots import Slot, Value

_NODE = frozenset({"node", "now"})


class NodeReservationSpec(PolicySpec):
    """What a node keeps for programs outside Kubernetes, told to scheduler and agents by an annotation."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether policies say what is kept; otherwise the annotation is left to whoever writes it.",
            roots=_NODE,
            default=False,
        ),
    ] = None
    cpu: Annotated[Value, Slot(CPU, "CPU that is kept.", roots=_NODE)] = None
    memory: Annotated[Value, Slot(MEMORY, "Memory that is kept.", roots=_NODE)] = None
    cpus: Annotated[
        Value,
        Slot(STRING, "CPUs that are kept whole, as in `0-3,8`; they take the place of `cpu`.", roots=_NODE),
    ] = None
    apply_to: Annotated[
        Value,
        Slot(
            STRING,
            "`Default`: pods cannot have what is kept. `ReservedCPUsOnly`: they cannot be bound to the CPUs that are kept, "
            "and allocatable amounts stay.",
            choices=("Default", "ReservedCPUsOnly"),
            roots=_NODE,
            default="Default",
        ),
    ] = None
