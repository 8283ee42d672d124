"""From text to tokens."""

import re
from typing import NamedTuple

from koordpolicy.language.cel.escapes import unescape_bytes, unescape_string
from koordpolicy.language.cel.lookalikes import closing, lookalike
from koordpolicy.language.cel.syntax import KEYWORDS, MAX_SOURCE, SyntaxProblem


class Token(NamedTuple):
    """One token. `kind` is `name`, `quoted`, `int`, `uint`, `double`, `string`, `bytes`, `end`, or
    the operator or keyword itself. `value` is a literal's value or a name's text; for int and uint
    the unchecked magnitude, because only the parser knows about a minus sign.
    """

    kind: str
    value: object
    start: int
    end: int


_COMMENT = re.compile(r"//[^\n\r]*")
_SKIP = re.compile(r"(?:[ \t\n\f\r]+|//[^\n\r]*)*")

# Order matters: a double before an int, a triple quote before a single one. A quoted text is
# matched up to its end without backtracking into it, so a long literal costs linear time.
_TOKEN = re.compile(
    r"""
      (?P<raw>(?:[rR][bB]?|[bB][rR])(?:'{3}[\s\S]*?'{3}|"{3}[\s\S]*?"{3}|'[^'\n\r]*'|"[^"\n\r]*"))
    | (?P<text>[bB]?(?:
          '{3}(?:[^'\\]|\\[\s\S]|'(?!''))*'{3}
        | "{3}(?:[^"\\]|\\[\s\S]|"(?!""))*"{3}
        | '(?!'')(?:[^'\\\n\r]|\\[^\n\r])*'
        | "(?!"")(?:[^"\\\n\r]|\\[^\n\r])*"
      ))
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<int>(?:0x[0-9a-fA-F]+|[0-9]+)(?P<unsigned>[uU]?))
    | (?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
    | (?P<operator>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE,
)

_SURROGATE = re.compile("[\ud800-\udfff]")
_QUANTITY = re.compile(r"[numkKMGTPE]i?|[mun]?s|[hd].*")
_WORD = re.compile(r"[A-Za-z0-9_]+")

_INSTEAD = {
    "=": "write `==` to compare",
    "&": "write `&&`",
    "|": "write `||`",
    "^": "write `math.bitXor(a, b)`, or `a != b` for booleans",
    "~": "write `math.bitNot(a)`",
    ";": "an expression is one value; bind names with `cel.bind(name, value, body)`",
    "@": "names start with a letter or an underscore",
    "$": "names start with a letter or an underscore",
    "#": "comments start with `//`, and end with their line where the expression is a block that begins with `|`",
    "\\": "a backslash can only stand inside a string",
}

NOT_CLOSED = "the text has no closing quote"
"""How it is told that a text does not end."""

_REPLACED = {"=": "==", "&": "&&", "|": "||"}


def tokens(source: str) -> list[Token]:
    """The tokens of `source`, the last of kind `end`.

    Raises SyntaxProblem (KP201, or KP211 for a text longer than MAX_SOURCE).
    """
    return scan(source, None)


def scan(source: str, problems: list[SyntaxProblem] | None) -> list[Token]:
    """The tokens as in `tokens`. Given a list, all problems but KP211 go there, and reading goes on.

    What cannot be read is then a token of kind `bad`, or what was meant.
    """
    if len(source) > MAX_SOURCE:
        raise SyntaxProblem(
            f"the expression has {len(source)} characters, at most {MAX_SOURCE} are permitted", 0, MAX_SOURCE,
            "move parts of it into variables", "KP211",
        )  # fmt: skip
    if not source.isascii() and (surrogate := _SURROGATE.search(source)):
        raise SyntaxProblem("the text holds a lone surrogate", surrogate.start(), surrogate.end())
    found: list[Token] = []
    add = found.append
    skip, match_token = _SKIP.match, _TOKEN.match
    position, length = _end(skip(source, 0)), len(source)
    while position < length:
        match = match_token(source, position)
        try:
            if match is None:
                raise _unreadable(source, position)
            end = match.end()
            text = match[0]
            kind = match.lastgroup
            if kind == "operator":
                add(Token(text, None, position, end))
            elif kind == "name":
                add(Token(text if text in KEYWORDS else "name", text, position, end))
            elif kind in ("text", "raw"):
                add(_quoted(text, kind == "raw", position, end))
            elif kind == "quoted":
                add(Token("quoted", text[1:-1], position, end))
            else:
                add(_number(source, match, position, end))
        except SyntaxProblem as problem:
            if problems is None:
                raise
            problems.append(problem)
            end = max(problem.end, position + 1, _end(match))
            while found and found[-1].start >= problem.start:
                found.pop()  # `===` is seen at its third sign
            found.extend(_meant(problem, min(problem.start, position), end))
        position = _end(skip(source, end))
    add(Token("end", None, length, length))
    return found


def comments(source: str) -> list[tuple[int, int]]:
    """Where comments of `source` begin and end. Raises SyntaxProblem for a text longer than MAX_SOURCE."""
    found: list[tuple[int, int]] = []
    at = 0
    for token in scan(source, []):
        found += (one.span() for one in _COMMENT.finditer(source, at, token.start))
        at = token.end
    return found


def _meant(problem: SyntaxProblem, start: int, end: int) -> list[Token]:
    """What the replacement of a problem says, which is at most one token."""
    if problem.replacement is None:
        return [Token("bad", None, start, end)]
    return [token._replace(start=start, end=end) for token in tokens(problem.replacement)[:-1]]


def _end(match: re.Match[str] | None) -> int:
    return match.end() if match is not None else 0


def _quoted(text: str, raw: bool, start: int, end: int) -> Token:
    prefix = 0
    while text[prefix] not in "'\"":
        prefix += 1
    binary = "b" in text[:prefix].lower()
    width = 3 if text[prefix : prefix + 3] in ("'''", '"""') and len(text) >= prefix + 6 else 1
    body = text[prefix + width : -width]
    at = start + prefix + width
    if "\r" in body:  # every line end counts as one line feed, whatever the file was written with
        body = body.replace("\r\n", "\n").replace("\r", "\n")
    if binary:
        return Token("bytes", body.encode() if raw else unescape_bytes(body, at), start, end)
    return Token("string", body if raw else unescape_string(body, at), start, end)


def _number(source: str, match: re.Match[str], start: int, end: int) -> Token:
    word = _WORD.match(source, end)
    if word is not None:
        suffix = word[0]
        help = None
        if suffix in ("u", "U"):
            help = "only whole numbers take a `u`"
        elif _QUANTITY.fullmatch(suffix):
            help = (
                f'write a quantity as text: `cpu("{match[0]}{suffix}")`, `memory("1Gi")`, `duration("15m")`'
            )
        raise SyntaxProblem(f"`{source[start : word.end()]}` is not a number", start, word.end(), help)
    if match["double"] is not None:
        number = float(match[0])
        if number == float("inf"):
            raise SyntaxProblem(f"`{match[0]}` is too large for a double", start, end, code="KP210")
        return Token("double", number, start, end)
    unsigned = bool(match["unsigned"])
    digits = match[0][:-1] if unsigned else match[0]
    # Python refuses to read very long decimals; anything past 40 digits is out of range anyway.
    value = (int(digits, 16) if digits[:2] == "0x" else int(digits)) if len(digits) <= 40 else _huge(digits)
    return Token("uint" if unsigned else "int", value, start, end)


def _huge(digits: str) -> int:
    significant = digits[2:].lstrip("0") if digits[:2] == "0x" else digits.lstrip("0")
    base = 16 if digits[:2] == "0x" else 10
    return int(significant, base) if significant and len(significant) <= 40 else (2**64 if significant else 0)


def _unreadable(source: str, at: int) -> SyntaxProblem:
    char = source[at]
    rest = source[at:].lstrip("rRbB")
    if rest[:1] in ("'", '"'):
        line_end = min(
            (i for i in (source.find("\n", at), source.find("\r", at)) if i >= 0), default=len(source)
        )
        curved = closing(source, at)
        if curved is not None:
            return curved
        if rest[:3] in ("'''", '"""'):
            return SyntaxProblem("the text has no closing quotes", at, at + 3, f"close it with {rest[:3]}")
        return SyntaxProblem(
            f"{NOT_CLOSED} on its line", at, line_end,
            f"close it with {rest[0]}, or use three quotes for a text of several lines",
        )  # fmt: skip
    if char == "`":
        end = source.find("`", at + 1) + 1 or len(source)
        return SyntaxProblem(
            "a name in backticks holds only letters, digits, space and `_ . - /`", at, end,
            "write any other key as an index: `labels['key']`",
        )  # fmt: skip
    if char == "=" and source[at - 2 : at] == "==":
        return SyntaxProblem("`===` is not an operator", at - 2, at + 1, _INSTEAD["="], replacement="==")
    other = lookalike(source, at)
    if other is not None:
        return other
    shown = char if char.isprintable() else f"U+{ord(char):04X}"
    return SyntaxProblem(
        f"`{shown}` cannot stand here", at, at + 1, _INSTEAD.get(char), replacement=_REPLACED.get(char)
    )
