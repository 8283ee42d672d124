"""Which functions of the table which referee has."""

from collections.abc import Mapping

from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library import LIBRARIES, OVERLOADS

OURS = frozenset({"min", "max", "percentile"})
"""Functions of no other implementation in libraries that others have."""

GOOGLE = frozenset(
    {"standard", "strings", "regex", "math", "lists", "sets", "optional", "encoders", "network"}
)
KUBERNETES = frozenset({"standard", "strings", "sets", "optional", "network", "kubernetes"})


def functions_of(kubernetes: bool) -> Mapping[str, Function]:
    """The rows of our table that cel-go has, or the API server's cel-go with Kubernetes' libraries."""
    libraries = KUBERNETES if kubernetes else GOOGLE
    found: dict[str, Function] = {}
    for row in (row for library in LIBRARIES for row in library):
        alone = row.name in OURS and row.library != "kubernetes"
        if row.library not in libraries or row.name == "percentile" or alone:
            continue
        known = found.get(row.name)
        found[row.name] = row if known is None else Function(
            row.name, known.library, known.summary, known.overloads + row.overloads, known.example
        )  # fmt: skip
    return found


IDS: Mapping[bool, frozenset[str]] = {
    kubernetes: frozenset(
        overload.id for row in functions_of(kubernetes).values() for overload in row.overloads
    )
    for kubernetes in (False, True)
}
"""The overloads that each has, without and with Kubernetes' libraries."""

ALL_IDS = frozenset(OVERLOADS)
