"""What the expressions may name: texts as long as annotations may be, lists and maps of a node's size."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.language.cel.types import DOUBLE, DYN, INT, STRING, TIMESTAMP, Type, list_of, map_of
from koordpolicy.language.cel.values import Timestamp

ANNOTATIONS: Final = 256 * 1024
"""Octets of all annotations of an object, which Kubernetes limits: one text may have them all."""


@dataclass(frozen=True, slots=True)
class Named:
    """A root by its type and value."""

    type: Type
    value: Any


def _text(part: str, length: int = ANNOTATIONS) -> str:
    return (part * (length // len(part) + 1))[:length]


ROOTS: Final[Mapping[str, Named]] = {
    "i": Named(INT, 7),
    "n": Named(INT, 200),
    "big": Named(INT, 5_000),
    "d": Named(DOUBLE, 0.1),
    "now": Named(TIMESTAMP, Timestamp(1_700_000_000_123_456_789)),
    "s": Named(STRING, "node-pool-7.example.com/zone"),
    "pattern": Named(STRING, "(a|b)*a.{10}c"),
    "same": Named(STRING, _text("a")),
    "equal": Named(STRING, _text("a", ANNOTATIONS - 1) + "a"),
    "mixed": Named(STRING, _text("ab cd,éf.1")),
    "wide": Named(STRING, _text("\N{GRINNING FACE}ab")),
    "numbers": Named(list_of(INT), list(range(300))),
    "doubles": Named(list_of(DOUBLE), [at * 0.37 for at in range(300)]),
    "texts": Named(list_of(STRING), [f"pod-{at}-{'x' * (at % 50)}" for at in range(300)]),
    "longs": Named(list_of(STRING), [_text("a", 20_000) for _ in range(12)]),
    "nested": Named(list_of(list_of(INT)), [list(range(at % 20)) for at in range(100)]),
    "labels": Named(map_of(STRING, STRING), {f"example.com/key-{at}": f"value-{at}" for at in range(64)}),
    "counts": Named(map_of(INT, INT), {at * 7: at for at in range(200)}),
    "any": Named(DYN, [1, 2.5, "three", [4, 5], {"six": 7}] * 40),
    "odd": Named(DYN, {"list": list(range(100)), "text": _text("ab", 5_000), "at": 3}),
}

# Values that were made apart are equal without being one and the same.
assert ROOTS["same"].value is not ROOTS["equal"].value
