"""Values of objects as facts by path: a record for each object that decisions read."""

from koordpolicy.model.facts.record import (
    BASIC,
    COUNTED,
    REQUESTABLE,
    Paths,
    Record,
    Times,
    paths,
    put_all,
    put_present,
)

__all__ = [
    "BASIC",
    "COUNTED",
    "REQUESTABLE",
    "Paths",
    "Record",
    "Times",
    "paths",
    "put_all",
    "put_present",
]
