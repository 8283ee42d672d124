"""Random values for the variables of `language`: edges of every type, and some variables without a value."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from koordpolicy.language.cel.values import NONE, TRUE_KEY, Duration, Optional, Timestamp, UInt
from tests.differential.grammar import VARIABLES

NANOS = 10**9
_INTS = (0, 1, -1, 2, 3, 7, 10, 63, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
_DOUBLES = (
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.5,
    2.5,
    1e18,
    2.0**63,
    -(2.0**63),
    2.0**64,
    1e308,
    5e-324,
    float("inf"),
    float("-inf"),
    float("nan"),
    9007199254740993.0,
)
_STRINGS = (
    "", "a", "b", "ab", "a,b", "é€", "10", "A b", "aéb", "😀x", "1.5", "true", "\x1c a\u3000", "10.0.0.1", "::1", "10.0.0.0/8", "UTC", "1h",
    "2024-02-29T00:00:00Z", "YQ==", "%s", "[a-c]+", "\\1", "koord-batch", "x\ny",
)  # fmt: skip
_BYTES = (b"", b"a", b"ab", "é".encode(), b"\xff\xfe", b"\xc3", b"\x00")
_LEAST, _MOST = -62_135_596_800 * NANOS, 253_402_300_799 * NANOS + NANOS - 1
_TIMES = (
    0,
    _LEAST,
    _MOST,
    2**63 - 1,
    2**63,
    -(2**63),
    -(2**63) - 1,
    1_234_567_890_123_456_789,
    32_503_679_999 * NANOS,
    -1,
)
_SPANS = (
    0,
    1,
    -1,
    999,
    1_000_000,
    NANOS,
    -NANOS,
    90 * NANOS,
    5_400 * NANOS + 1,
    2**63 - 1,
    -(2**63),
    10**18 + 7,
)
_MISSING = 0.03

Make = Callable[[Random], Any]


def _of(edges: tuple[Any, ...], made: Callable[[Any], Any] = lambda value: value) -> Make:
    return lambda chance: made(chance.choice(edges))


def _some(inner: Make, most: int = 4) -> Make:
    return lambda chance: [inner(chance) for _ in range(chance.randrange(most))]


def _keyed(key: Make, inner: Make) -> Make:
    return lambda chance: {key(chance): inner(chance) for _ in range(chance.randrange(4))}


def _int(chance: Random) -> int:
    return chance.choice(_INTS) if chance.random() < 0.6 else chance.randrange(-20, 20)


def _timestamp(chance: Random) -> Timestamp:
    return Timestamp(chance.choice(_TIMES) if chance.random() < 0.5 else chance.randrange(_LEAST, _MOST))


_double, _string = _of(_DOUBLES), _of(_STRINGS)
_key = _of(("a", "b", "c", "", "é"))
_optional: Make = lambda chance: NONE if chance.random() < 0.3 else Optional(_int(chance))  # noqa: E731


def _anything(chance: Random, depth: int = 2) -> Any:
    makes: list[Make] = [
        _int, _int, _double, _string, _string, _of((True, False)), _of((None,)), _of((0, 1, 2**64 - 1), UInt), _of(_BYTES),
        _timestamp, _of(_SPANS, Duration), _optional,
    ]  # fmt: skip
    if depth:
        inner: Make = lambda chance: _anything(chance, depth - 1)  # noqa: E731
        makes += [_some(inner), _keyed(_key, inner), _keyed(_of(("a", 1, 2, TRUE_KEY, UInt(7))), inner)]
    return chance.choice(makes)(chance)


MAKES: Mapping[str, Make] = {
    "int": _int,
    "uint": _of((0, 1, 9, 2**63, 2**64 - 1), UInt),
    "double": _double,
    "bool": _of((True, False)),
    "string": _string,
    "bytes": _of(_BYTES),
    "timestamp": _timestamp,
    "duration": _of(_SPANS, Duration),
    "ints": _some(_int, 5),
    "strings": _some(_string),
    "doubles": _some(_double),
    "dyns": _some(_anything),
    "intss": _some(_some(_int)),
    "map": _keyed(_key, _int),
    "names": _keyed(_key, _string),
    "numbered": _keyed(_int, _string),
    "dyn": _anything,
    "optint": _optional,
    "optstring": lambda chance: NONE if chance.random() < 0.3 else Optional(_string(chance)),
}
"""Kind of variable → a value of it."""


def row(chance: Random) -> dict[str, Any]:
    """A value for most of the variables."""
    return {name: MAKES[kind](chance) for name, kind in VARIABLES.items() if chance.random() >= _MISSING}
