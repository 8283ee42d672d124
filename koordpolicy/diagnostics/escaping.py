r"""Text of others made safe to show: the one place that decides which characters may be seen as they are.

What a terminal would obey (controls), what hides or turns round what stands beside it (format characters,
line and paragraph separators), and what no encoding and no XML can hold (surrogates, noncharacters) is written
as an escape: `\x1b`, `\u202e`. A byte of a file's name that is no UTF-8 is a surrogate in Python, U+DC80 and
above, and is shown as the byte it is: `\xff`.

Inside, text has no surrogates; what does is refused where it comes in: names of files by `source/survey.py` (KP001),
escapes in YAML by `language/documents/build.py` (KP002), in CEL by its lexer, in JSON by `parse_json` of
`model/reading.py` and by the client of the API server, which take such an object for unreadable.
"""

import json
import re
from collections.abc import Callable
from typing import Any

UNSAFE = (
    "\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd"
    "\U00013430-\U0001345f\U0001bca0-\U0001bcaf\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(1, 17))
)
"""The characters, as between the brackets of a regular expression; unassigned ones beside them are among them."""

_UNSAFE = re.compile(f"[{UNSAFE}]")
_UNSAFE_IN_LINES = re.compile(f"(?!\n)[{UNSAFE}]")
_NOT_ASCII = re.compile("[^\n\x20-\x7e]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def one_line(text: str) -> str:
    """The text on one line, everything unsafe in it escaped: for names."""
    return text if text.isprintable() else _UNSAFE.sub(_escape, text)


def safe(text: str) -> str:
    """The same for what may have several lines: line feeds stay, and carriage returns before them go."""
    if text.isprintable():
        return text
    return _UNSAFE_IN_LINES.sub(_escape, text.replace("\r\n", "\n") if "\r" in text else text)


def is_plain(name: str) -> bool:
    """Whether a name is text that everybody sees the same, and every format can hold."""
    return name.isprintable() or _UNSAFE.search(name) is None


def json_text(
    value: Any,
    *,
    indent: int | None = None,
    only_ascii: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """A value as JSON that is safe to show: what JSON itself lets through is escaped in its way.

    A surrogate, which no reader of JSON need take, becomes U+FFFD. `only_ascii` escapes all that is not ASCII; `indent`
    and `default` are as for `json.dumps`.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=default)
    if only_ascii:
        return text if text.isascii() and text.isprintable() else _NOT_ASCII.sub(_json_escape, text)
    if text.isprintable():
        return text
    # Outside of strings JSON has no characters but visible ones, spaces and line feeds.
    return _UNSAFE_IN_LINES.sub(_json_escape, text)


def encodable(text: str) -> str:
    """The text with U+FFFD for each surrogate, so that it can be written as UTF-8 and sent as JSON."""
    return text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    if 0xD800 <= code <= 0xDFFF:
        return r"\ufffd"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 | code & 0x3FF:04x}"
