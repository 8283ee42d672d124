"""What other schedulers have allocated on a node, as its annotation says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.model.protocol import THIRD_PARTY_ALLOCATIONS
from koordpolicy.model.quantity import amount_text
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


def with_allocation(annotations: Mapping[str, str], mine: ThirdPartyAllocation) -> str | None:
    """What the annotation is to say so that one scheduler has this, and others what they have; None for no annotation.

    An allocation of nothing is left out. Raises ObjectError when the annotation is malformed.
    """
    source = annotations.get(THIRD_PARTY_ALLOCATIONS)
    declared = embedded_object(source, THIRD_PARTY_ALLOCATIONS) if source else {}
    kept = [
        one
        for one in objects(declared, "allocations", THIRD_PARTY_ALLOCATIONS)
        if text(one, "name", THIRD_PARTY_ALLOCATIONS) != mine.name
    ]
    if any(mine.resources.values()):
        resources = {name: amount_text(name, number) for name, number in sorted(mine.resources.items())}
        kept.append({"name": mine.name, "priority": mine.priority, "resources": resources})
    if not kept and declared.keys() <= {"allocations"}:
        return None
    return json.dumps({**declared, "allocations": kept}, separators=(",", ":"))
