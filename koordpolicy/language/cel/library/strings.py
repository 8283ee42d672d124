"""The strings library. Positions count code points."""

from koordpolicy.language.cel.errors import InvalidArgument, NoSuchOverload
from koordpolicy.language.cel.functions import METERED_CALL, Function, Size
from koordpolicy.language.cel.library.formatting import format_text, price_of_format
from koordpolicy.language.cel.library.limits import bounded_text, check_list, check_text
from koordpolicy.language.cel.library.row import (
    function,
    method,
    plain,
    reads,
    reads_twice,
    signature,
    takes,
    tenths,
)
from koordpolicy.language.cel.meter import UNMETERED, Meter, charge
from koordpolicy.language.cel.types import DYN, INT, STRING, list_of
from koordpolicy.language.cel.values import Value, type_name

_LIB = "strings"
# White space as Unicode's property has it. Python's own `strip` would take the separators
# 0x1c to 0x1f as well.
_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_ESCAPES = {
    "\\": "\\\\", "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
    '"': r"\"",
}  # fmt: skip
"""What a quoted string says instead of some characters, the backslash before all that become one."""


def _within(text: str, index: int) -> None:
    if not 0 <= index <= len(text):
        raise InvalidArgument(f"index {index} is outside a string of {len(text)} characters")


def _char_at(text: str, index: int) -> str:
    _within(text, index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    _within(text, start)
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    _within(text, start)
    if start == len(text) and part:
        return -1
    return text.rfind(part, 0, start + len(part))


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    found = text.count(old) if limit < 0 else min(text.count(old), limit)
    check_text(len(text) + found * (len(new) - len(old)))
    return text.replace(old, new, found)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    parts = text.count(separator) + 1 if separator else len(text)
    check_list(parts if limit < 0 else min(parts, limit))
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    _within(text, start)
    _within(text, last)
    if start > last:
        raise InvalidArgument(f"a substring from {start} to {last}")
    return text[start:last]


def _join(parts: list[Value], separator: str = "", meter: Meter = UNMETERED) -> str:
    charge(meter, _PART * len(parts))
    size = 0
    for part in parts:
        if type(part) is not str:
            raise NoSuchOverload(f"`join` takes a list of strings, here an element is {type_name(part)}")
        size += len(part) + len(separator)
    check_text(size)
    charge(meter, 2 * tenths(size))
    return separator.join(parts)  # type: ignore[arg-type]


_PART = 3
"""Units of one part of what is joined, beside its characters."""


def _joining(sizes: tuple[Size, ...]) -> int:
    parts, extent = sizes[0]
    separators = parts * sizes[1].length if len(sizes) > 1 else 0
    return METERED_CALL + _PART * parts + 2 * tenths(extent + separators)


def _searching_back(sizes: tuple[Size, ...]) -> int:
    """Python compares the part anew at each position when it searches from the end."""
    return METERED_CALL + tenths(sizes[0].length) * max(1, -(-sizes[1].length // 5))


def _reverse(text: str) -> str:
    return text[::-1]


def _quote(text: str) -> str:
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return bounded_text(f'"{text}"')


def _lower(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _upper(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").upper().decode("utf-8", "surrogatepass")


def _trim(text: str) -> str:
    return text.strip(_SPACE)


_TEXT = (STRING,)
_STRINGS = list_of(STRING)

LIBRARY: tuple[Function, ...] = (
    method(
        "charAt", _LIB, "the character at a position, '' at the end", "'abc'.charAt(1) == 'b'",
        (STRING, INT), STRING, _char_at, takes(METERED_CALL),
    ),
    function(
        "indexOf", _LIB, "the first position of a part, -1 for none; search from an offset",
        "'abcb'.indexOf('b', 2) == 3",
        signature("indexOf", (STRING, STRING), INT, _index_of, receiver=True, cost=reads(0, 1)),
        signature("indexOf", (STRING, STRING, INT), INT, _index_of, receiver=True, cost=reads(0, 1)),
    ),
    function(
        "lastIndexOf", _LIB, "the last position of a part, -1 for none; none later than an offset",
        "'abcb'.lastIndexOf('b') == 3",
        signature("lastIndexOf", (STRING, STRING), INT, _last_index_of, receiver=True, cost=_searching_back),
        signature(
            "lastIndexOf", (STRING, STRING, INT), INT, _last_index_of, receiver=True, cost=_searching_back
        ),
    ),
    function(
        "join", _LIB, "one string from a list, with a separator between", "['a', 'b'].join('-') == 'a-b'",
        signature("join", (_STRINGS,), STRING, _join, receiver=True, cost=_joining),
        signature("join", (_STRINGS, STRING), STRING, _join, receiver=True, cost=_joining),
    ),
    method(
        "lowerAscii", _LIB, "A to Z in lower case", "'Batch'.lowerAscii() == 'batch'",
        _TEXT, STRING, _lower, reads(0),
    ),
    method(
        "upperAscii", _LIB, "a to z in upper case", "'be'.upperAscii() == 'BE'",
        _TEXT, STRING, _upper, reads(0),
    ),
    function(
        "replace", _LIB, "replace a part everywhere, or the first n times", "'aba'.replace('a', 'c', 1) == 'cba'",
        signature("replace", (STRING, STRING, STRING), STRING, _replace, receiver=True, cost=reads_twice(0)),
        signature(
            "replace", (STRING, STRING, STRING, INT), STRING, _replace, receiver=True, cost=reads_twice(0)
        ),
    ),
    function(
        "split", _LIB, "the parts between separators, at most n of them", "'a,b,c'.split(',', 2) == ['a', 'b,c']",
        signature("split", (STRING, STRING), _STRINGS, _split, receiver=True, cost=reads_twice(0)),
        signature("split", (STRING, STRING, INT), _STRINGS, _split, receiver=True, cost=reads_twice(0)),
    ),
    function(
        "substring", _LIB, "the characters from a position, up to another", "'abcd'.substring(1, 3) == 'bc'",
        signature("substring", (STRING, INT), STRING, _substring, receiver=True, cost=takes(METERED_CALL)),
        signature("substring", (STRING, INT, INT), STRING, _substring, receiver=True, cost=takes(METERED_CALL)),
    ),
    method(
        "trim", _LIB, "without white space at both ends", "'  a '.trim() == 'a'", _TEXT, STRING, _trim, reads(0)
    ),
    method(
        "reverse", _LIB, "the characters in reverse order", "'abc'.reverse() == 'cba'",
        _TEXT, STRING, _reverse, reads(0),
    ),
    plain(
        "strings.quote", _LIB, "in double quotes, with escapes", "strings.quote('a') == '\"a\"'",
        _TEXT, STRING, _quote, reads_twice(0),
    ),
    method(
        "format", _LIB, "fill in %s %d %f %e %b %o %x %X; %.2f sets the digits, %% is a percent sign",
        "'%s has %d pods'.format([node.name, 3])",
        (STRING, list_of(DYN)), STRING, format_text, price_of_format,
    ),
)  # fmt: skip
