"""The strings library. Positions count code points."""

from koordpolicy.language.cel.errors import InvalidArgument, NoSuchOverload
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.formatting import format_text
from koordpolicy.language.cel.library.limits import bounded_text, check_list, check_text
from koordpolicy.language.cel.library.row import (
    crosses,
    function,
    method,
    plain,
    reads,
    reads_twice,
    signature,
)
from koordpolicy.language.cel.types import DYN, INT, STRING, list_of
from koordpolicy.language.cel.values import Value, type_name

_LIB = "strings"
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code + 32: code for code in _LOWER}
# White space as Unicode's property has it. Python's own `strip` would take the separators
# 0x1c to 0x1f as well.
_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_ESCAPES = str.maketrans(
    {
        "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v",
        "\\": "\\\\", '"': r"\"",
    }
)  # fmt: skip


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
    if separator:
        parts = text.split(separator, limit - 1 if limit > 0 else -1)
    elif 0 < limit < len(text):
        parts = [*text[: limit - 1], text[limit - 1 :]]
    else:
        parts = list(text)
    check_list(len(parts))
    return parts


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    _within(text, start)
    _within(text, last)
    if start > last:
        raise InvalidArgument(f"a substring from {start} to {last}")
    return text[start:last]


def _join(parts: list[Value], separator: str = "") -> str:
    size = 0
    for part in parts:
        if type(part) is not str:
            raise NoSuchOverload(f"`join` takes a list of strings, here an element is {type_name(part)}")
        size += len(part) + len(separator)
    check_text(size)
    return separator.join(parts)  # type: ignore[arg-type]


def _reverse(text: str) -> str:
    return text[::-1]


def _quote(text: str) -> str:
    return bounded_text(f'"{text.translate(_ESCAPES)}"')


def _lower(text: str) -> str:
    return text.translate(_LOWER)


def _upper(text: str) -> str:
    return text.translate(_UPPER)


def _trim(text: str) -> str:
    return text.strip(_SPACE)


_TEXT = (STRING,)
_STRINGS = list_of(STRING)

LIBRARY: tuple[Function, ...] = (
    method(
        "charAt", _LIB, "the character at a position, '' at the end", "'abc'.charAt(1) == 'b'",
        (STRING, INT), STRING, _char_at,
    ),
    function(
        "indexOf", _LIB, "the first position of a part, -1 for none; search from an offset",
        "'abcb'.indexOf('b', 2) == 3",
        signature("indexOf", (STRING, STRING), INT, _index_of, receiver=True, cost=crosses(0, 1, 10)),
        signature("indexOf", (STRING, STRING, INT), INT, _index_of, receiver=True, cost=crosses(0, 1, 10)),
    ),
    function(
        "lastIndexOf", _LIB, "the last position of a part, -1 for none; none later than an offset",
        "'abcb'.lastIndexOf('b') == 3",
        signature("lastIndexOf", (STRING, STRING), INT, _last_index_of, receiver=True, cost=crosses(0, 1, 10)),
        signature(
            "lastIndexOf", (STRING, STRING, INT), INT, _last_index_of, receiver=True, cost=crosses(0, 1, 10)
        ),
    ),
    function(
        "join", _LIB, "one string from a list, with a separator between", "['a', 'b'].join('-') == 'a-b'",
        signature("join", (_STRINGS,), STRING, _join, receiver=True, cost=reads_twice(0)),
        signature("join", (_STRINGS, STRING), STRING, _join, receiver=True, cost=reads_twice(0, 1)),
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
        signature("substring", (STRING, INT), STRING, _substring, receiver=True, cost=reads(0)),
        signature("substring", (STRING, INT, INT), STRING, _substring, receiver=True, cost=reads(0)),
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
        (STRING, list_of(DYN)), STRING, format_text, reads_twice(0),
    ),
)  # fmt: skip
