"""What YARN may use of nodes."""

from typing import Annotated

from koordpolicy.language.cel.types import BOOL, CPU, DURATION, MEMORY, PERCENT, STRING
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value

_ALONE: frozenset[str] = frozenset()
_NODE = frozenset({"node", "now"})
_YARN = _NODE | {"yarn"}


class YARNOffer(PolicyModel):
    """What YARN is offered; never more than `yarn.free`, in whole vcores and mebibytes."""

    cpu: Annotated[Value, Slot(CPU, "Batch CPU.", roots=_YARN)] = None
    memory: Annotated[Value, Slot(MEMORY, "Batch memory.", roots=_YARN)] = None


class YARNPace(PolicyModel):
    """How often the ResourceManager is spoken with. What policies say of all nodes together."""

    interval: Annotated[
        Value, Slot(DURATION, "How often nodes are looked at.", roots=_ALONE, default="10s")
    ] = None
    timeout: Annotated[
        Value,
        Slot(
            DURATION, "How long an answer of the ResourceManager is waited for.", roots=_ALONE, default="5s"
        ),
    ] = None


class YARNNodeSpec(PolicySpec):
    """What the YARN NodeManager of a node may use of its batch resources, and how it is taken back."""

    enabled: Annotated[
        Value,
        Slot(
            BOOL,
            "Whether YARN is offered anything there; if not, what it was offered is taken back.",
            roots=_NODE,
            default=False,
        ),
    ] = None
    node_manager: Annotated[
        Value,
        Slot(
            STRING,
            "`host:port` by which the ResourceManager knows the node's NodeManager; empty where it has none.",
            roots=frozenset({"node"}),
        ),
    ] = None
    vcore: Annotated[
        Value, Slot(CPU, "How much CPU a vcore of YARN stands for.", roots=_NODE, default="1")
    ] = None
    offer: Given[YARNOffer] = None
    """What YARN is offered."""
    claim: Annotated[
        Value,
        Slot(
            STRING,
            "What is kept from pods. `Offered`: all that YARN may use, before it may, so that nothing is given twice. `Used`: what "
            "its containers have, as Koordinator's yarn-operator does; pods and containers may then take the same amounts at "
            "once, until YARN has given back.",
            choices=("Offered", "Used"),
            roots=_NODE,
            default="Offered",
        ),
    ] = None
    when_changed_by: Annotated[
        Value,
        Slot(
            PERCENT,
            "Change, as a share of the node's batch resources, below which offers and claims stay, unless they are more than there is.",
            roots=_NODE,
            default="10%",
        ),
    ] = None
    over_commit_timeout: Annotated[
        Value,
        Slot(
            DURATION,
            "How long containers may go on that have more than YARN is offered still; the ResourceManager ends some of them then.",
            roots=_YARN,
            default="30s",
        ),
    ] = None
    release_after: Annotated[
        Value,
        Slot(
            DURATION,
            "How long what YARN had is kept from pods after its ResourceManager ceased to know the NodeManager as one that runs.",
            roots=_NODE,
            default="10m",
        ),
    ] = None
    pace: Given[YARNPace] = None
    """How often the ResourceManager is asked, and for how long."""
