"""Which inputs there can be: facts of their declared types, within their bounds, missing only where they may be."""

from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Any, Final

from koordpolicy.graph.analysis.facts import bounds_of, choices_of, is_above_zero, record_of
from koordpolicy.graph.neutral import element
from koordpolicy.graph.proof.verdict import Records
from koordpolicy.graph.samples import sample
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, Duration, Timestamp, UInt
from koordpolicy.language.facts import FACTS, ROOTS, Fact

_CLASSES: Final[Mapping[str, type]] = {
    "bool": bool,
    "int": int,
    "uint": UInt,
    "double": float,
    "string": str,
    "google.protobuf.Duration": Duration,
    "google.protobuf.Timestamp": Timestamp,
}

_NOTHING: Final = object()


Seen = dict[tuple[str, str, int], Any]
"""Records, lists and maps that were found valid, by root, path and identity; they are kept here, so that no other takes theirs."""


def is_valid(records: Records, known: Records, seen: Seen | None = None) -> bool:
    """Whether readers of objects could give these records; `known` are valid ones, most of them the same.

    Who asks of many records that share most of their values passes one `seen` each time: what is the same object as in
    one asked of before is not looked at again. Nothing of them may be changed meanwhile.
    """
    for name, declared in ROOTS.items():
        held = records.get(name)
        if held is known.get(name, _NOTHING):
            continue
        if declared.type.record is None:
            if not _fits(name, "", declared.type, held, seen):
                return False
        elif not (declared.may_be_missing and not held) and not _is_record(
            name, held, known.get(name) or {}, seen
        ):
            return False
    return True


@cache
def _facts(record: str) -> tuple[Mapping[str, Fact], frozenset[str]]:
    """The facts of a record by path, and the paths of those that are never missing."""
    facts = FACTS.records[record].facts
    return {fact.path: fact for fact in facts}, frozenset(
        fact.path for fact in facts if not fact.may_be_missing
    )


def _is_record(root: str, record: Any, known: Mapping[str, Any], seen: Seen | None = None) -> bool:
    if not isinstance(record, Mapping):
        return False
    if seen is not None and (root, "", id(record)) in seen:
        return True
    facts, always = _facts(record_of(root))
    valid = always <= record.keys() and all(
        path in facts and _fits(root, path, facts[path].type, value, seen)
        for path, value in record.items()
        if value is not known.get(path, _NOTHING)
    )
    if valid and seen is not None:
        seen[root, "", id(record)] = record
    return valid


def _fits(root: str, path: str, kind: Type, value: Any, seen: Seen | None = None) -> bool:
    """Whether a value can be that of a fact, of its elements where `kind` is theirs."""
    if seen is None or not isinstance(value, list | dict):
        return _fits_anew(root, path, kind, value, seen)
    if (root, path, id(value)) in seen:
        return True
    if not _fits_anew(root, path, kind, value, seen):
        return False
    seen[root, path, id(value)] = value
    return True


def _fits_anew(root: str, path: str, kind: Type, value: Any, seen: Seen | None) -> bool:
    if kind.name == "list":
        inner = kind.params[0]
        return isinstance(value, list) and all(
            _is_record(inner.record, item, {}, seen)
            if inner.record is not None
            else _fits(root, path, inner, item, seen)
            for item in value
        )
    if kind.name == "map":
        return isinstance(value, Mapping) and all(
            isinstance(key, str) and _fits(root, path, kind.params[1], item) for key, item in value.items()
        )
    if type(value) is not _CLASSES.get(kind.name):
        return False
    match value:
        case bool():
            return True
        case str():
            choices = choices_of(root, path)
            return not choices or value in choices
        case Timestamp():
            return True
        case float():
            low, high = bounds_of(root, path, kind)
            if value == 0 and is_above_zero(root, path):
                return False
            return isfinite(value) and (low == INT_MIN or value >= low) and (high == INT_MAX or value <= high)
        case Duration(ns=number) | (int() as number):
            low, high = bounds_of(root, path, kind)
            return low <= number <= high
    return True


def repaired(records: Mapping[str, Any], usual: Records) -> dict[str, Any]:
    """The records with a value that can be wherever theirs cannot; `usual` are valid records to take it from."""
    made = dict(records)
    for name, declared in ROOTS.items():
        record, held = declared.type.record, made.get(name)
        if record is None:
            if not _fits(name, "", declared.type, held):
                made[name] = usual[name]
        elif held and held is not usual.get(name):
            base = usual.get(name) or element(record, {})
            if not _is_record(name, held, base):
                made[name] = _mended(name, record, held, base)
    return made


def _mended(root: str, record: str, held: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    facts, always = _facts(record)
    made = {path: base[path] for path in always - held.keys()}
    for path, value in held.items():
        kind = facts[path].type
        if _fits(root, path, kind, value):
            made[path] = value
        elif kind.name == "map" and isinstance(value, Mapping):
            inner = kind.params[1]
            made[path] = {
                key: item if _fits(root, path, inner, item) else sample(inner) for key, item in value.items()
            }
        elif path in base:
            made[path] = base[path]
    return made
