"""Every number that a policy sets has bounds, or a reason to have none; what is computed keeps to them at run time, too."""

from collections.abc import Iterator
from math import inf
from typing import Any

import pytest

from koordpolicy.graph.bounds import RANGES, permitted_of
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.casts import limited
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import Duration
from koordpolicy.language.kinds import Slot, slots
from koordpolicy.language.kinds.table import KINDS

ANY = {
    "Overcommit": "cpu memory zone.cpu zone.memory",  # negative counts as none
    "CPUSuppress": "target figures[*]",  # negative where there is none; figures only tell
    "ContainerHook": "cpuSpeed pod.cpuRequest pod.cpuLimit pod.memoryLimit container.cpuRequest container.cpuLimit "
    "container.memoryLimit",  # negative is without limit
    # KP409 is about scores; negative estimates count as none; the window is asked of all nodes at once, and no node reports a negative one
    "SchedulingProfile": "scores[*].value estimator.request load.filter.window",
    "CPUEviction": "byPriority.highestPriority byRequests.highestPriority",  # priorities are any whole number
    "MemoryEviction": "byPriority.highestPriority byRequests.highestPriority",
    "QuotaTree": "defaults.sharedWeight admission.request admission.limit quotas[*].min quotas[*].max quotas[*].weight "
    "sharing.min sharing.max sharing.weight",  # ElasticQuotas take what is below nothing
    "GangScheduling": "minimum total network.multiples",  # a gang that needs nobody is always complete
    "QuotaProfile": "ratio min max",  # as in Koordinator, whose profiles take any
    "Amplification": "ratio minimum normalization.ratio normalization.minimum normalization.maximum "
    "normalization.whenChangedBy",  # its own minimum and maximum say what is believed
    "CPUTopology": "nodes.amplification scoring.weights",  # 1 and less change nothing; weights below nothing count as none
    "ReservationPolicy": "choice.weights",  # weights below nothing count as none
    # weights of nothing and below count as 1, or turn an order round
    "Descheduling": "strategies[*].load.weights strategies[*].weights",
    "DeviceResource": "amount",  # negative counts as none
    "MetricCollection": "percentilesOver "  # a window has a second at least
    "devices.harmlessErrors",  # numbers that NVIDIA gives to errors
    "DeviceSharing": "requests.derive[*] "  # an amount that Kubernetes itself refuses below nothing
    # nobody asks for less than nothing; sizes that no machine has are passed over; KP416 is about weights of usual pods
    "scheduling.converts[*] scheduling.atMost[*] scheduling.leftover scheduling.partitionSizes "
    "scheduling.usualPods scheduling.score scheduling.templates",
}
"""Numbers that may be anything, by kind."""


def numbers() -> Iterator[tuple[str, str, Slot]]:
    for kind in KINDS.values():
        for found in slots(kind.spec):
            inner = found.slot.type
            while inner.params:
                inner = inner.params[-1]
            if inner.is_number or inner.name == "google.protobuf.Duration":
                yield kind.name, found.field, found.slot


NUMBERS = list(numbers())
BOUNDED = [
    (kind, field, slot) for kind, field, slot in NUMBERS if permitted_of(DecisionKey(kind, "", field), slot)
]


@pytest.mark.parametrize(
    ("kind", "field", "slot"), NUMBERS, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_number_has_bounds_or_a_reason(kind: str, field: str, slot: Slot) -> None:
    bounded = permitted_of(DecisionKey(kind, "", field), slot) is not None
    assert bounded != (field in ANY.get(kind, "").split())


@pytest.mark.parametrize(
    ("kind", "field", "slot"), BOUNDED, ids=lambda one: one if isinstance(one, str) else ""
)
def test_what_is_computed_keeps_to_the_bounds(kind: str, field: str, slot: Slot) -> None:
    permitted = permitted_of(DecisionKey(kind, "", field), slot)
    assert permitted is not None
    program = compile_row(("x",), limited(ir.Var(slot.type, "x"), permitted))
    for bound, step in ((permitted.low, -1), (permitted.high, 1)):
        if abs(bound) == inf:
            continue
        with pytest.raises(CelError):
            program.call(_value(slot.type, bound + step))
        if step > 0 or permitted.low_fits:
            assert program.call(_value(slot.type, bound)) == _value(slot.type, bound)


def _value(kind: Type, number: float) -> Any:
    if kind.params:
        inner = _value(kind.params[-1], number)
        return {"a": inner} if kind.name == "map" else [inner]
    if kind.name == "google.protobuf.Duration":
        return Duration(int(number))
    return float(number) if kind.name == "double" else int(number)


def test_bounds_are_of_slots_that_there_are() -> None:
    known = {(kind, field): slot.type for kind, field, slot in NUMBERS}
    for one in RANGES:
        if not one.field.startswith("parameters."):
            own = known[one.kind, one.field]
            assert (own.params[-1] if own.name == "map" else own) == one.type, one
