"""What a Recommendation says in its status, and when that is another than before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.recommended import Recommended, differs
from koordpolicy.manager.recommender.histories import CPU, RESOURCES
from koordpolicy.model.pod import read_time
from koordpolicy.model.protocol import RECOMMENDED_BOUNDS
from koordpolicy.model.quantity import Notation, Quantity, QuantityError, amount
from koordpolicy.model.reading import (
    Json,
    ObjectError,
    amounts,
    embedded_object,
    mapping,
    objects,
    text,
    texts,
)
from koordpolicy.model.time import time_text
from koordpolicy.model.unreadable import Unreadable, readable

NO_OBJECTS: Final = "NoObjectsMatched"
LOW_CONFIDENCE: Final = "LowConfidence"
UNSUPPORTED: Final = "ConfigUnsupported"

Amounts3 = Mapping[str, Recommended]
"""What is recommended of each resource."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, with a reason for programs and words for people."""

    type: str
    status: bool
    reason: str
    message: str

    @property
    def word(self) -> str:
        return "True" if self.status else "False"


def quantity_text(resource: str, amount: int) -> str:
    """An amount as Kubernetes writes it."""
    return str(Quantity.of_milli(amount) if resource == CPU else Quantity.of(amount, Notation.BINARY))


def status_of(
    containers: Mapping[str, Amounts3], conditions: Sequence[Condition], before: Json, now: int
) -> dict[str, Any]:
    """The status of an object that was `before`: conditions keep the time of their last change, where that can be read."""
    read = readable(_changes, before)
    known = {} if isinstance(read, Unreadable) else read
    return {
        "podStatus": {
            "containerStatuses": [
                {
                    "containerName": name,
                    "resources": {
                        resource: quantity_text(resource, found.target)
                        for resource, found in sorted(containers[name].items())
                    },
                }
                for name in sorted(containers)
            ]
        },
        "updateTime": time_text(now),
        "conditions": [_plain(one, known.get(one.type), now) for one in conditions],
    }


def _changes(obj: Json) -> dict[str, tuple[str, str]]:
    """By condition, its status and since when it has that. Raises ObjectError."""
    return {
        text(one, "type"): (text(one, "status"), text(one, "lastTransitionTime"))
        for one in objects(mapping(obj, "status"), "conditions", "status")
    }


def _plain(condition: Condition, before: tuple[str, str] | None, now: int) -> dict[str, Any]:
    since = "" if before is None or before[0] != condition.word else before[1]
    return {
        "type": condition.type,
        "status": condition.word,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": since or time_text(now),
    }


def bounds_text(containers: Mapping[str, Amounts3]) -> dict[str, Any]:
    """The bounds for the annotation, as JSON."""
    return {
        name: {
            bound: {
                resource: quantity_text(resource, getattr(found, bound))
                for resource, found in sorted(containers[name].items())
            }
            for bound in ("lower", "upper")
        }
        for name in sorted(containers)
    }


def recommended_in(obj: Json) -> dict[str, dict[str, Recommended]]:
    """What a Recommendation says already; a bound that it does not say is as the target. Raises ObjectError."""
    annotations = texts(mapping(obj, "metadata"), "annotations", "metadata")
    source = annotations.get(RECOMMENDED_BOUNDS)
    bounds = {} if source is None else embedded_object(source, RECOMMENDED_BOUNDS)
    status = mapping(obj, "status")
    found: dict[str, dict[str, Recommended]] = {}
    for one in objects(mapping(status, "podStatus", "status"), "containerStatuses", "status.podStatus"):
        name = text(one, "containerName", "status.podStatus.containerStatuses")
        targets = amounts(one, "resources", "status.podStatus.containerStatuses")
        said = mapping(bounds, name, RECOMMENDED_BOUNDS)
        lower, upper = (mapping(said, bound, RECOMMENDED_BOUNDS) for bound in ("lower", "upper"))
        found[name] = {
            resource: Recommended(
                _bound(lower, resource, targets[resource]),
                targets[resource],
                _bound(upper, resource, targets[resource]),
            )
            for resource in RESOURCES
            if resource in targets
        }
    return found


def _bound(said: Json, resource: str, otherwise: int) -> int:
    if resource not in said:
        return otherwise
    try:
        return amount(resource, said[resource])
    except QuantityError as error:
        raise ObjectError(f"{RECOMMENDED_BOUNDS}: {error}") from None


def is_due(
    obj: Json,
    containers: Mapping[str, Amounts3],
    conditions: Sequence[Condition],
    share: float,
    at_least: int,
    now: int,
) -> bool:
    """Whether what an object says is to be written anew: it changed by more than a share, or is `at_least` so old."""
    try:
        before = recommended_in(obj)
        status = mapping(obj, "status")
        written = read_time(status, "updateTime", "status")
        said = [
            tuple(text(one, key) for key in ("type", "status", "reason", "message"))
            for one in objects(status, "conditions", "status")
        ]
    except ObjectError:
        return True  # nobody else writes it: it has to be put right
    if written is None or now - written >= at_least:
        return True
    if said != [(one.type, one.word, one.reason, one.message) for one in conditions]:
        return True
    if {name: set(found) for name, found in before.items()} != {
        name: set(found) for name, found in containers.items()
    }:
        return True
    return any(
        differs(old, new, share)
        for name, found in containers.items()
        for resource, one in found.items()
        for old, new in zip(_all(before[name][resource]), _all(one), strict=True)
    )


def _all(found: Recommended) -> tuple[int, int, int]:
    return found.lower, found.target, found.upper
