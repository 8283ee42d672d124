"""Regular expressions with RE2's syntax and its linear running time."""

from functools import lru_cache

import re2

from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.limits import MAX_PATTERN, check_list, check_text
from koordpolicy.language.cel.library.row import Cost, function, signature
from koordpolicy.language.cel.types import BOOL, INT, STRING, list_of, optional_of
from koordpolicy.language.cel.values import NONE, Optional

_MEMORY = 1 << 20


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> "re2._Regexp":
    """The compiled pattern. Raises InvalidArgument when RE2 doesn't take it."""
    if len(pattern) > MAX_PATTERN:
        raise InvalidArgument(f"a regular expression of more than {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as found:
        reason = found.args[0] if found.args else "bad syntax"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidArgument(f"`{pattern}` is no regular expression: {text}") from None


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return compile_pattern(pattern).search(text) is not None


def find(text: str, pattern: str) -> str:
    """The first match, or the empty string."""
    found = compile_pattern(pattern).search(text)
    return "" if found is None else str(found.group())


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All matches from the left, at most `limit` of them unless it is negative."""
    result: list[str] = []
    if limit == 0:
        return result
    for found in compile_pattern(pattern).finditer(text):
        result.append(found.group())
        if len(result) == limit:
            break
    check_list(len(result))
    return result


def replace(text: str, pattern: str, replacement: str, limit: int = -1) -> str:
    r"""Replace matches; `\1` to `\9` in the replacement are groups, `\0` the match."""
    compiled = compile_pattern(pattern)
    pieces = _pieces(replacement, compiled.groups)
    result: list[str] = []
    size = end = 0
    for done, found in enumerate(compiled.finditer(text)):
        if done == limit:
            break
        result.append(text[end : found.start()])
        result.extend(part if isinstance(part, str) else found.group(part) or "" for part in pieces)
        end = found.end()
        size += sum(map(len, result[-1 - len(pieces) :]))
        check_text(size)
    result.append(text[end:])
    check_text(size + len(result[-1]))
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


def extract(text: str, pattern: str) -> Optional:
    """The first match, or its one capture group, as an optional."""
    found = _single_group(pattern).search(text)
    if found is None:
        return NONE
    value = found.group(found.re.groups)
    return NONE if value is None else Optional(value)


def extract_all(text: str, pattern: str) -> list[str]:
    """All matches, or their one capture group where it took part."""
    compiled = _single_group(pattern)
    values = [found.group(compiled.groups) for found in compiled.finditer(text)]
    check_list(len(values))
    return [value for value in values if value is not None]


def _single_group(pattern: str) -> "re2._Regexp":
    compiled = compile_pattern(pattern)
    if compiled.groups > 1:
        raise InvalidArgument("the pattern may have one capture group at most")
    return compiled


_STRINGS = list_of(STRING)


def _scan(text: int, pattern: int) -> Cost:
    """A tenth of the text times a quarter of the pattern, as Kubernetes prices it."""
    return lambda sizes: 1 + -(-(sizes[text] + 1) // 10) * -(-sizes[pattern] // 4)


_COST = _scan(0, 1)
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
