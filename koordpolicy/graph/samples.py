"""Harmless values for facts: what an example input has where no condition asks for anything."""

from koordpolicy.language.cel.types import Type, Unit
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.facts import FACTS, ROOTS, Fact

_BY_UNIT: dict[Unit, object] = {
    Unit.CPU: 4000,
    Unit.BYTES: 8 << 30,
    Unit.PERCENT: 50.0,
    Unit.BANDWIDTH: 1_000_000_000,
    Unit.AMOUNT: 1,
}
_BY_NAME: dict[str, object] = {
    "bool": False,
    "int": 1,
    "uint": 1,
    "double": 1.0,
    "string": "",
    "google.protobuf.Duration": Duration(0),
    "google.protobuf.Timestamp": Timestamp(0),
}


def sample(type: Type) -> object:
    """A value of the type: small, present, unremarkable."""
    if type.unit is not None:
        return _BY_UNIT[type.unit]
    if type.name == "list":
        return []
    if type.name in ("map", "record"):
        return {}
    return _BY_NAME.get(type.name)


def fill(root: str, path: str) -> object:
    """A value for the fact `root.path`; an empty path is the root itself."""
    declared = ROOTS.get(root)
    if declared is None:
        return None
    if not path:
        return sample(declared.type)
    fact = FACTS.resolve(declared.type.record or "", path)
    return sample(fact.type) if isinstance(fact, Fact) else None
