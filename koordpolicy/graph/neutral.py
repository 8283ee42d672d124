"""What facts are where a test does not say them.

A fact that can be missing on a healthy system is missing then. Every other one has the value that means
nothing: zero, no text, an empty list, or what its declaration calls usual (a pod is active, the request a
CREATE). So a test says what matters for its case, and answers name what it left unsaid.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.facts import FACTS, ROOTS, Fact
from koordpolicy.language.kinds import literal_value

Record = dict[str, Any]


class _Gone:
    """Marks a fact that a test takes away; there is one, `GONE`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "GONE"


GONE: Final = _Gone()
"""What a test says with `null`: there is no such value."""

_ZEROS: Mapping[str, object] = MappingProxyType(
    {
        "bool": False,
        "int": 0,
        "uint": 0,
        "double": 0.0,
        "string": "",
        "google.protobuf.Duration": Duration(0),
        "google.protobuf.Timestamp": Timestamp(0),
    }
)


def records_of(said: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """The value of every root, by what a test says: records as flat dicts, others as they are.

    A root that may be missing (the pod before an update) is there only when something is said of it.
    """
    by_root: dict[str, Record] = {}
    for (root, path), value in said.items():
        by_root.setdefault(root, {})[path] = value
    roots: dict[str, Any] = {}
    for name, declared in ROOTS.items():
        own = by_root.get(name, {})
        if declared.type.record is not None:
            absent = declared.may_be_missing and not any(value is not GONE for value in own.values())
            roots[name] = {} if absent else element(declared.type.record, own)
        else:
            value = own.get("", _zero(declared.type, declared.usual))
            if value is not GONE:
                roots[name] = value
    return roots


def element(record: str, said: Mapping[str, Any]) -> Record:
    """One record: what is said of it, over what such records usually have."""
    whole = {**_usual(record), **said}
    return {path: _kept(value) for path, value in whole.items() if value is not GONE}


def _kept(value: Any) -> Any:
    if isinstance(value, dict) and any(item is GONE for item in value.values()):
        return {key: item for key, item in value.items() if item is not GONE}
    return value


@cache
def _usual(record: str) -> Mapping[str, Any]:
    declared = FACTS.records[record]
    return MappingProxyType(
        {fact.path: usual_value(fact) for fact in declared.facts if not fact.may_be_missing}
    )


def usual_value(fact: Fact) -> Any:
    """What a fact is in a test that does not say it; meant for facts that are never missing."""
    return _zero(fact.type, fact.usual)


def _zero(type: Type, usual: Any) -> Any:
    if usual is not None:
        return literal_value(type, usual)
    if type.name in ("list", "map"):
        return [] if type.name == "list" else {}
    return _ZEROS[type.name]
