"""Devices and shares of them."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.cel.types import AMOUNT, BOOL, STRING, list_of
from koordpolicy.language.kinds.base import PolicySpec
from koordpolicy.language.kinds.fields import Given, LabelKey, PolicyModel
from koordpolicy.language.kinds.slots import Slot, Value

_POD = frozenset({"pod", "namespaceObject", "operation", "now"})
_CONTAINER = _POD | {"container"}


class DeviceRequests(PolicyModel):
    """How containers come to ask for devices in the words that the scheduler knows."""

    enabled: Annotated[Value, Slot(BOOL, "Whether requests are rewritten.", roots=_POD, default=True)] = None
    resources: Annotated[
        Value,
        Slot(
            list_of(STRING),
            "Resources by which a container is known to ask for these devices; others are left alone.",
            roots=frozenset(),
            default=[],
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
            ),
        ],
    ] = Field(default_factory=dict)
    """Resources that a container is to ask for, unless it does so itself, by name."""


class DeviceSharingSpec(PolicySpec):
    """What pods may have of a sort of devices, and how they ask for it."""

    requests: Given[DeviceRequests] = None
    """How requests are rewritten where pods are created."""
