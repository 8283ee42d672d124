r"""Regular expressions with RE2's syntax and its linear running time.

The engine is RE2 in C++; what is taken and found is what Go's `regexp` takes and finds, which the other
implementations of the language follow. Texts are searched as UTF-8, and positions are octets.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import re2

from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.functions import METERED_CALL, Cost, Function, Size
from koordpolicy.language.cel.library.convert import bytes_from_string
from koordpolicy.language.cel.library.limits import MAX_PATTERN, check_list, check_text
from koordpolicy.language.cel.library.row import function, signature, tenths
from koordpolicy.language.cel.meter import UNMETERED, Meter, Metered, charge
from koordpolicy.language.cel.types import BOOL, INT, STRING, list_of, optional_of
from koordpolicy.language.cel.values import NONE, Optional

_MEMORY = 1 << 20
_SHOWN = 100
_PART = re.compile(
    r"""
      \\Q.*?(?:\\E|\Z)
    | (?P<octet>\\C)
    | \\.
    | \[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]
    | \(\?P?<(?P<name>[^>]*)>
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z0-9_]+")


@lru_cache(maxsize=128)
def compile_pattern(pattern: str) -> "re2._Regexp":
    """The compiled pattern, which searches octets. Raises InvalidArgument when it is not RE2's, or too long."""
    if len(pattern) > MAX_PATTERN:
        raise InvalidArgument(f"a regular expression of more than {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    octets = bytes_from_string(pattern)
    _check_as_go(pattern)
    try:
        return re2.compile(octets, options)
    except re2.error as found:
        reason = found.args[0] if found.args else "bad syntax"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise _refusal(pattern, text) from None


def _check_as_go(pattern: str) -> None:
    r"""Refuse what RE2 in C++ takes and RE2 in Go does not: `\C`, and names that are no words."""
    for part in _PART.finditer(pattern):
        if part["octet"]:
            raise _refusal(pattern, r"`\C` would take a character apart")
        name = part["name"]
        if name is not None and not _NAME.fullmatch(name):
            raise _refusal(pattern, f"`{name}` cannot name a group")


def _refusal(pattern: str, reason: str) -> InvalidArgument:
    return InvalidArgument(f"`{pattern[:_SHOWN]}` is no regular expression: {reason}")


_SEARCH = 240
"""Units of any search."""

_GIVEN_UP = 100_000
"""Units of a counted repetition that grows beyond the memory of one pattern: some five milliseconds."""
_COMPILING = 600
"""Units of each character of a pattern that is compiled at run time."""


def _price(compiled: "re2._Regexp", octets: int) -> int:
    """Units of a search through so much text, the engine following every part of the pattern at each octet."""
    return _SEARCH + octets * (2 + int(compiled.programsize)) // 20


def _compiled(pattern: "str | re2._Regexp", meter: Meter) -> "re2._Regexp":
    """The pattern, compiled unless it was beforehand."""
    if not isinstance(pattern, str):
        return pattern
    charge(meter, _COMPILING * len(pattern))
    try:
        return compile_pattern(pattern)
    except InvalidArgument:
        if "{" in pattern:  # RE2 may have built up all that it is permitted before it gave up
            charge(meter, _GIVEN_UP)
        raise


def _octets(text: str, meter: Meter) -> bytes:
    charge(meter, tenths(len(text)))
    return bytes_from_string(text)


def _first(compiled: "re2._Regexp", text: bytes, meter: Meter, position: int = 0) -> "re2._Match | None":
    r"""The first match from a position on that does not begin within a character, where RE2 sees a `\B`."""
    charge(meter, _price(compiled, len(text) - position))
    found = compiled.search(text, position)
    while found is not None and _within(text, found.start()):
        charge(meter, _price(compiled, len(text) - found.start()))
        found = compiled.search(text, _next(text, found.start()))
    return found


def _all(compiled: "re2._Regexp", text: bytes, meter: Meter) -> "Iterator[re2._Match]":
    """Matches one after another, none of them empty right behind the one before."""
    position, end, before = 0, len(text), -1
    while position <= end and (found := _first(compiled, text, meter, position)) is not None:
        start, stop = found.span()
        if stop > position:
            position = stop
        else:
            position = _next(text, position) if position < end else end + 1
        if start < stop or start != before:
            yield found
        before = stop


def _within(text: bytes, position: int) -> bool:
    """Whether a position of UTF-8 lies inside of a character."""
    return position < len(text) and text[position] & 0xC0 == 0x80


def _next(text: bytes, position: int) -> int:
    """Where the next character begins."""
    position += 1
    while _within(text, position):
        position += 1
    return position


def _group(found: "re2._Match", number: int, meter: Meter) -> str:
    """What a group holds, the empty string where it took no part."""
    start, end = found.span(number)
    charge(meter, 1 + 2 * tenths(end - start))
    held = found.group(number)
    return "" if held is None else held.decode("utf-8")


def matches(text: str, pattern: str, meter: Meter = UNMETERED) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return _first(_compiled(pattern, meter), _octets(text, meter), meter) is not None


def tester(pattern: str) -> Metered:
    """`matches` of a pattern known beforehand. Raises InvalidArgument when it is no regular expression."""
    compiled = compile_pattern(pattern)

    def found(meter: Meter, text: str) -> bool:
        return _first(compiled, bytes_from_string(text), meter) is not None

    return found


def find(text: str, pattern: str, meter: Meter = UNMETERED) -> str:
    """The first match, or the empty string."""
    found = _first(_compiled(pattern, meter), _octets(text, meter), meter)
    return "" if found is None else _group(found, 0, meter)


def find_all(text: str, pattern: str, limit: int = -1, meter: Meter = UNMETERED) -> list[str]:
    """All matches from the left, at most `limit` of them unless it is negative."""
    compiled = _compiled(pattern, meter)
    result: list[str] = []
    if limit == 0:
        return result
    for found in _all(compiled, _octets(text, meter), meter):
        result.append(_group(found, 0, meter))
        check_list(len(result))
        if len(result) == limit:
            break
    return result


def replace(text: str, pattern: str, replacement: str, limit: int = -1, meter: Meter = UNMETERED) -> str:
    r"""Replace matches, the first `limit` of them unless it is negative.

    `\1` to `\9` in the replacement are groups, `\0` the match; a replacement that is never used is not looked at.
    """
    if limit == 0:
        return text
    compiled, octets = _compiled(pattern, meter), _octets(text, meter)
    pieces: list[str | int] | None = None
    result: list[str] = []
    size = end = 0
    for done, found in enumerate(_all(compiled, octets, meter)):
        if done == limit:
            break
        charge(meter, 2 * len(replacement) + 2 * tenths(found.start() - end))
        pieces = pieces if pieces is not None else _pieces(replacement, compiled.groups)
        result.append(octets[end : found.start()].decode("utf-8"))
        result.extend(part if isinstance(part, str) else _group(found, part, meter) for part in pieces)
        end = found.end()
        size += sum(map(len, result[-1 - len(pieces) :]))
        check_text(size)
    result.append(octets[end:].decode("utf-8"))
    check_text(size + len(result[-1]))
    charge(meter, 2 * tenths(size + len(result[-1])))
    return "".join(result)


def _pieces(replacement: str, groups: int) -> list[str | int]:
    pieces: list[str | int] = []
    position = 0
    while position < len(replacement):
        character = replacement[position]
        if character != "\\":
            pieces.append(character)
            position += 1
            continue
        following = replacement[position + 1 : position + 2]
        if following == "\\":
            pieces.append("\\")
        elif following.isascii() and following.isdigit():
            if int(following) > groups:
                raise InvalidArgument(f"the pattern has no group {following}")
            pieces.append(int(following))
        else:
            raise InvalidArgument("a backslash in a replacement comes before a digit or a backslash")
        position += 2
    return pieces


def extract(text: str, pattern: str, meter: Meter = UNMETERED) -> Optional:
    """The first match, or its one capture group unless that is empty, as an optional."""
    compiled = _single_group(pattern, meter)
    found = _first(compiled, _octets(text, meter), meter)
    if found is None:
        return NONE
    value = _group(found, compiled.groups, meter)
    return Optional(value) if value or not compiled.groups else NONE


def extract_all(text: str, pattern: str, meter: Meter = UNMETERED) -> list[str]:
    """All matches, or their one capture group where it is not empty."""
    compiled = _single_group(pattern, meter)
    values: list[str] = []
    for found in _all(compiled, _octets(text, meter), meter):
        value = _group(found, compiled.groups, meter)
        if value or not compiled.groups:
            values.append(value)
            check_list(len(values))
    return values


def _single_group(pattern: "str | re2._Regexp", meter: Meter) -> "re2._Regexp":
    compiled = _compiled(pattern, meter)
    if compiled.groups > 1:
        raise InvalidArgument("the pattern may have one capture group at most")
    return compiled


_STRINGS = list_of(STRING)


def _searching(text: int, pattern: int) -> Cost:
    """One search for a pattern that is not known: an instruction or two for each of its characters."""
    return lambda sizes: (
        METERED_CALL
        + _SEARCH
        + sizes[pattern].length * _COMPILING
        + sizes[text].length * (4 + 2 * sizes[pattern].length) // 20
    )


_SEARCHING = frozenset(("matches", "find", "findAll", "regex.replace", "regex.extract", "regex.extractAll"))


def beforehand(overload: str, pattern: object) -> "re2._Regexp | None":
    """The constant pattern of a call, compiled; None for calls that search for none, and for what is no pattern."""
    name = overload.partition("(")[0].removeprefix(".")
    if name not in _SEARCHING or not isinstance(pattern, str):
        return None
    try:
        return compile_pattern(pattern)
    except InvalidArgument:
        return None


def price_of_search(overload: str, pattern: str) -> Cost | None:
    """The price of a call with a known pattern; None for calls that search for none, and for what is no pattern."""
    compiled = beforehand(overload, pattern)
    if compiled is None:
        return None
    name = overload.partition("(")[0].removeprefix(".")
    many = name in ("findAll", "regex.replace", "regex.extractAll")

    def cost(sizes: tuple[Size, ...]) -> int:
        characters = sizes[0].length
        rounds = characters + 1 if many else 1
        made = sizes[2].extent * rounds * 3 if name == "regex.replace" else 0
        return METERED_CALL + rounds * (_price(compiled, characters) + 4) + 2 * characters + made

    return cost


_COST = _searching(0, 1)
LIBRARY: tuple[Function, ...] = (
    function(
        "matches", "standard", "whether a regular expression (RE2) is found in a string",
        "'grey'.matches('gr(a|e)y')",
        signature("matches", (STRING, STRING), BOOL, matches, receiver=True, dotted=True, cost=_COST),
        signature("matches", (STRING, STRING), BOOL, matches, cost=_COST),
    ),
    function(
        "find", "kubernetes", "the first match of a regular expression, '' for none",
        "'abc 123'.find('[0-9]+') == '123'",
        signature("find", (STRING, STRING), STRING, find, receiver=True, cost=_COST),
    ),
    function(
        "findAll", "kubernetes", "all matches of a regular expression, or the first `limit`",
        "'1 2 3'.findAll('[0-9]', 2) == ['1', '2']",
        signature("findAll", (STRING, STRING), _STRINGS, find_all, receiver=True, cost=_COST),
        signature("findAll", (STRING, STRING, INT), _STRINGS, find_all, receiver=True, cost=_COST),
    ),
    function(
        "regex.replace", "regex", "replace matches; \\1 to \\9 in the replacement are groups",
        r"regex.replace('a-b', '(.)-(.)', r'\2-\1') == 'b-a'",
        signature("regex.replace", (STRING, STRING, STRING), STRING, replace, cost=_COST),
        signature("regex.replace", (STRING, STRING, STRING, INT), STRING, replace, cost=_COST),
    ),
    function(
        "regex.extract", "regex", "the first match, or its capture group, as an optional",
        "regex.extract('v1.2', 'v([0-9]+)').orValue('') == '1'",
        signature("regex.extract", (STRING, STRING), optional_of(STRING), extract, cost=_COST),
    ),
    function(
        "regex.extractAll", "regex", "all matches, or their capture group",
        "regex.extractAll('a1b2', '[0-9]') == ['1', '2']",
        signature("regex.extractAll", (STRING, STRING), _STRINGS, extract_all, cost=_COST),
    ),
)  # fmt: skip
