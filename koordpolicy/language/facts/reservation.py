"""Facts of Reservations: what their objects say, and how they stand in the scheduler."""

from koordpolicy.language.cel.types import BOOL, INT, STRING, map_of
from koordpolicy.language.facts.table import Component, Components, Fact, Record, by_name

_SCHEDULER: Components = frozenset({Component.SCHEDULER})

RESERVATION = Record(
    "reservation",
    "A Reservation object, and what its owners have of it.",
    (
        Fact("name", STRING, "Name of the object.", _SCHEDULER),
        Fact("labels", map_of(STRING, STRING), "Labels of the object.", _SCHEDULER),
        Fact("annotations", map_of(STRING, STRING), "Annotations of the object.", _SCHEDULER),
        Fact(
            "order",
            INT,
            "What its label `reservation-order` says; 0 where that is no number, or absent.",
            _SCHEDULER,
        ),
        Fact("allocateOnce", BOOL, "Whether it is for one pod alone, as `spec` says.", _SCHEDULER),
        Fact(
            "allocatePolicy",
            STRING,
            "`Aligned`, `Restricted`, or empty for the default.",
            _SCHEDULER,
        ),
        Fact("unschedulable", BOOL, "Whether it takes no new pods.", _SCHEDULER),
        Fact(
            "phase",
            STRING,
            "`Pending`, `Available`, `Waiting`, `Succeeded` or `Failed`.",
            _SCHEDULER,
            usual="Available",
        ),
        Fact("node", STRING, "The node on which it keeps room; empty for none.", _SCHEDULER),
        Fact("owners", INT, "How many pods have taken from it.", _SCHEDULER),
        Fact(
            "score",
            INT,
            "How good it is for the pod that is decided on, 0 to 100, as `choice.strategy` says; 0 where there is no such pod.",
            _SCHEDULER,
        ),
        by_name("resources.allocatable", "What it keeps, by resource name.", _SCHEDULER),
        by_name("resources.allocated", "What its owners have of that, by resource name.", _SCHEDULER),
    ),
)
