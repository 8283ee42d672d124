"""Characters that look like those of an expression and are others: from word processors, other scripts, or not to be seen."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final
from unicodedata import category, name, normalize

from koordpolicy.language.cel.syntax import SyntaxProblem

_QUOTES: Final = "“”„‟«»″‘’‚‛‹›′´"
_IN_QUOTES: Final = re.compile(rf"""[{_QUOTES}'"]([^{_QUOTES}'"\\\n\r]*)[{_QUOTES}'"]""")

_SIGNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "≠": "!=",
        "≤": "<=",
        "≥": ">=",
        "–": "-",
        "—": "-",
        "−": "-",
        "×": "*",
        "÷": "/",
        "∧": "&&",
        "∨": "||",
        "∕": "/",
    }
)

_LETTERS: Final[Mapping[int, int]] = MappingProxyType(
    str.maketrans(
        # Cyrillic, Greek and, last, a Latin letter without its dot
        "аеорсухѕіјһԁԛԝѵкАВЕКМНОРСТУХЅІЈ" + "ονρικυχατΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "ı",
        "aeopcyxsijhdqwvkABEKMHOPCTYXSIJ" + "ovpikuxatABEZHIKMNOPTYX" + "i",
    )
)

_WORD: Final = re.compile(r"[^\W\d]\w*")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT: Final = re.compile(r"""'[^'\n]*'|"[^"\n]*"|//[^\n]*""")
_JOINERS: Final = frozenset("\u200c\u200d")
"""Not to be seen, and needed by some scripts."""


def lookalike(source: str, at: int) -> SyntaxProblem | None:
    """What is wrong where `source[at]` is no character of an expression but looks like one, or cannot be seen.

    None where it is some other character. The problem may begin before `at`, with the word that the character is in.
    """
    char = source[at]
    if char.isascii():
        return None
    if char in _QUOTES:
        return _quoted(source, at)
    if category(char) == "Cf":
        return _unseen(char, at)
    if char in _SIGNS:
        return _other(char, _SIGNS[char], at)
    plain = normalize("NFKC", char)
    if plain == " ":
        help = "write a plain space"
        return SyntaxProblem(
            f"the character {_named(char)} cannot stand here", at, at + 1, help, replacement=" "
        )
    if plain.isascii() and not plain.isalnum():
        return _other(char, plain, at)
    return _word(source, at)


def _quoted(source: str, at: int) -> SyntaxProblem:
    found = _IN_QUOTES.match(source, at)
    help = "texts stand in straight quotes: `'` or `\"`"
    if found is None:
        return SyntaxProblem(f"`{source[at]}` is no quote of an expression", at, at + 1, help)
    return SyntaxProblem(
        f"`{source[at]}` is no quote of an expression", at, found.end(), help, replacement=f"'{found[1]}'"
    )


def closing(source: str, at: int) -> SyntaxProblem | None:
    """For a straight quote that is not closed: the curved one that was to close it; None where there is none."""
    found = _IN_QUOTES.match(source, at)
    if found is None or found[0][-1] not in _QUOTES:
        return None
    return SyntaxProblem(
        f"`{found[0][-1]}` does not close a text", at, found.end(), f"close it with {source[at]}",
        replacement=f"'{found[1]}'",
    )  # fmt: skip


def _unseen(char: str, at: int) -> SyntaxProblem:
    """What turns the direction of text gets no fix: the author must see first what really stands there."""
    turns = char in _TURNING
    return SyntaxProblem(
        f"the character {_named(char)} cannot stand here", at, at + 1,
        "remove it: it shows the expression in another order than it is read in" if turns else "remove it: it cannot be seen",
        replacement=None if turns else "",
    )  # fmt: skip


_TURNING: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _other(char: str, plain: str, at: int) -> SyntaxProblem:
    return SyntaxProblem(f"`{char}` cannot stand here", at, at + 1, f"write `{plain}`", replacement=plain)


def _word(source: str, at: int) -> SyntaxProblem | None:
    """A word with letters of other scripts, the whole of it."""
    start = at
    while start and (source[start - 1].isalnum() or source[start - 1] == "_"):
        start -= 1
    found = _WORD.match(source, start)
    if found is None or found.end() <= at:
        return None
    plain = plain_word(found[0])
    if not _NAME.fullmatch(plain):
        return SyntaxProblem(
            f"`{source[at]}` cannot stand in a name", start, found.end(), "names have letters from a to z, digits and `_`"
        )  # fmt: skip
    strange = next(one for one in found[0] if not one.isascii())
    return SyntaxProblem(
        f"`{strange}` in `{found[0]}` is {_named(strange)}",
        start,
        found.end(),
        f"write `{plain}`",
        replacement=plain,
    )


def plain_word(word: str) -> str:
    """The word in letters from a to z, as far as others look like them."""
    return normalize("NFKC", word).translate(_LETTERS)


def disguised(source: str) -> Iterator[SyntaxProblem]:
    """KP219 for each stretch of a text or comment that shows something else than it holds.

    For an expression that can be read: what stands elsewhere in it has been refused.
    """
    if source.isascii():
        return
    for stretch in _TEXT.finditer(source):
        for at in range(stretch.start(), stretch.end()):
            char = source[at]
            if not char.isascii() and category(char) == "Cf" and char not in _JOINERS:
                message = f"the character {_named(char)} stands in a text, where it cannot be seen"
                yield SyntaxProblem(message, at, at + 1, _unseen(char, at).help, "KP219", replacement="")
        for word in _WORD.finditer(source, stretch.start(), stretch.end()):
            mixed = any(one.isascii() and one.isalpha() for one in word[0]) and not word[0].isascii()
            plain = plain_word(word[0])
            if mixed and plain.isascii():
                strange = next(one for one in word[0] if not one.isascii())
                message = f"`{strange}` in `{word[0]}` is {_named(strange)}"
                help = f"write `{plain}`, if that is meant"
                yield SyntaxProblem(message, word.start(), word.end(), help, "KP219", replacement=plain)


def _named(char: str) -> str:
    """The character by its name: `U+00A0 (no-break space)`."""
    return f"U+{ord(char):04X} ({name(char, 'no character').lower()})"
