"""What a pod says of reservations: which it wants, whether it wants any, and which one it has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from koordpolicy.model.placement import NodeTerm, Toleration, read_node_term, read_toleration
from koordpolicy.model.protocol import (
    EXACT_MATCH_RESERVATION,
    OPERATING_AS_RESERVATION,
    OPERATING_MODE,
    RESERVATION_AFFINITY,
    RESERVATION_ALLOCATED,
    RESERVATION_IGNORED,
    RESERVATION_OWNERS,
)
from koordpolicy.model.reading import (
    NO_TEXT,
    Json,
    ObjectError,
    embedded,
    embedded_object,
    mapping,
    objects,
    text,
    text_list,
    texts,
)
from koordpolicy.model.reservation import OwnerTerm, read_owner_terms

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class ReservationAffinity:
    """The reservations that a pod has to be placed on. With a `name` the rest is not asked, tolerations neither.

    `required` are terms on labels one of which must hold, None where there are none to hold.
    """

    name: str = ""
    selector: Mapping[str, str] = field(default_factory=lambda: NO_TEXT)
    required: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class PodReservations:
    """What a pod says of reservations. `affinity` is None where it need not be on any; `exact` are the resources of which
    it wants one with exactly its amounts; `allocated` is the UID of the one that it has, empty for none.
    """

    affinity: ReservationAffinity | None = None
    exact: tuple[str, ...] = ()
    ignores: bool = False
    allocated: str = ""


NO_RESERVATIONS: Final = PodReservations()

_SAID: Final = (RESERVATION_AFFINITY, EXACT_MATCH_RESERVATION, RESERVATION_ALLOCATED)


def read_pod_reservations(labels: Mapping[str, str], annotations: Mapping[str, str]) -> PodReservations:
    """What labels and annotations of a pod say of reservations. Raises ObjectError."""
    ignores = labels.get(RESERVATION_IGNORED) == "true"
    if not ignores and not any(name in annotations for name in _SAID):
        return NO_RESERVATIONS
    exact = annotations.get(EXACT_MATCH_RESERVATION)
    said = embedded_object(exact, EXACT_MATCH_RESERVATION) if exact else {}
    return PodReservations(
        read_affinity(annotations),
        tuple(text_list(said, "resourceNames", EXACT_MATCH_RESERVATION)),
        ignores,
        allocated_uid(annotations),
    )


def read_affinity(annotations: Mapping[str, str]) -> ReservationAffinity | None:
    """The affinity annotation; None without one. An empty text is an affinity that any reservation meets. Raises ObjectError."""
    source = annotations.get(RESERVATION_AFFINITY)
    if source is None:
        return None
    at = RESERVATION_AFFINITY
    said: Json = embedded_object(source, at) if source.strip() else {}
    required = mapping(said, _REQUIRED, at)
    terms = [*objects(required, "reservationSelectorTerms", f"{at}.{_REQUIRED}")]
    return ReservationAffinity(
        text(said, "name", at),
        texts(said, "reservationSelector", at),
        tuple(read_node_term(one) for one in terms) if said.get(_REQUIRED) is not None else None,
        tuple(read_toleration(one) for one in objects(said, "tolerations", at)),
    )


def allocated_uid(annotations: Mapping[str, str]) -> str:
    """The UID of the reservation that a pod has taken from; empty for none. Raises ObjectError."""
    source = annotations.get(RESERVATION_ALLOCATED)
    if not source:
        return ""
    return text(embedded_object(source, RESERVATION_ALLOCATED), "uid", RESERVATION_ALLOCATED)


def operates_as_reservation(labels: Mapping[str, str]) -> bool:
    """Whether a pod keeps its room for others once it is ready."""
    return labels.get(OPERATING_MODE) == OPERATING_AS_RESERVATION


def read_operating_owners(annotations: Mapping[str, str]) -> tuple[OwnerTerm, ...]:
    """Whose a pod is that operates as a reservation. Raises ObjectError."""
    source = annotations.get(RESERVATION_OWNERS)
    if not source:
        return ()
    found: Any = embedded(source, RESERVATION_OWNERS)
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise ObjectError(f"{RESERVATION_OWNERS}: expected a list of owners")
    return read_owner_terms(found, RESERVATION_OWNERS)
