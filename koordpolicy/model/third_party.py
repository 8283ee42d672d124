"""What other schedulers have allocated on a node, as its annotation says."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.model.protocol import THIRD_PARTY_ALLOCATIONS
from koordpolicy.model.reading import Amounts, amounts, embedded_object, objects, text


@dataclass(frozen=True, slots=True)
class ThirdPartyAllocation:
    """Resources that a scheduler outside Kubernetes uses; `priority` is a class name on the wire."""

    name: str
    priority: str
    resources: Amounts


def third_party_allocations(annotations: Mapping[str, str]) -> tuple[ThirdPartyAllocation, ...]:
    """The allocations; none without the annotation. Raises ObjectError when it is malformed."""
    source = annotations.get(THIRD_PARTY_ALLOCATIONS)
    if not source:
        return ()
    declared = embedded_object(source, THIRD_PARTY_ALLOCATIONS)
    return tuple(
        ThirdPartyAllocation(
            text(one, "name", THIRD_PARTY_ALLOCATIONS),
            text(one, "priority", THIRD_PARTY_ALLOCATIONS),
            amounts(one, "resources", THIRD_PARTY_ALLOCATIONS),
        )
        for one in objects(declared, "allocations", THIRD_PARTY_ALLOCATIONS)
    )
