"""What nodes offer of their devices."""

from typing import Annotated

from koordpolicy.language.cel.types import AMOUNT, BOOL, STRING, list_of, map_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.slots import Slot, Value

_NODE = frozenset({"node", "now"})


class DeviceResourceSpec(PolicySpec):
    """What a node offers of a sort of devices, by its Device object."""

    enabled: Annotated[
        Value,
        Slot(BOOL, "Whether policies say what is offered; otherwise it stays.", roots=_NODE, default=True),
    ] = None
    resources: Annotated[Value, Slot(list_of(STRING), "Resources that are offered.", roots=_NODE)] = None
    amount: Annotated[
        Value, Slot(AMOUNT, "How much of a resource is offered.", roots=_NODE | {"resource"})
    ] = None
    withdrawn: Annotated[
        Value, Slot(list_of(STRING), "Resources that are not offered any more.", roots=_NODE)
    ] = None
    labels: Annotated[
        Value, Slot(map_of(STRING, STRING), "Labels that the node is to have.", roots=_NODE)
    ] = None
