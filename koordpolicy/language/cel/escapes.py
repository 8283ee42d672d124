"""Escape sequences of string and bytes literals, both ways."""

import re

from koordpolicy.language.cel.syntax import SyntaxProblem

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip

_ESCAPE = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\?\"'`])|[xX](?P<x>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})"
    r"|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<bad>[\s\S]?))"
)


def unescape_string(body: str, at: int) -> str:
    """The text a string literal stands for. `at` is the offset of `body`, for messages.

    Raises SyntaxProblem for an unknown escape, a surrogate or a code point past U+10FFFF.
    """

    def replace(match: re.Match[str]) -> str:
        group = match.lastgroup
        digits = match[match.lastindex or 0]
        if group == "simple":
            return _SIMPLE[digits]
        if group == "bad":
            raise _unknown(match, at)
        code = int(digits, 8 if group == "octal" else 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise SyntaxProblem(
                f"`{match[0]}` is not a Unicode character", at + match.start(), at + match.end(),
                "surrogates and code points past U+10FFFF cannot stand in a string",
            )  # fmt: skip
        return chr(code)

    return _ESCAPE.sub(replace, body) if "\\" in body else body


def unescape_bytes(body: str, at: int) -> bytes:
    """The octets a bytes literal stands for: UTF-8, with hexadecimal and octal escapes as octets."""
    octets = bytearray()
    last = 0
    for match in _ESCAPE.finditer(body):
        octets += body[last : match.start()].encode()
        last = match.end()
        group = match.lastgroup
        digits = match[match.lastindex or 0]
        if group == "simple":
            octets += _SIMPLE[digits].encode()
        elif group in ("x", "octal"):
            octets.append(int(digits, 16 if group == "x" else 8))
        elif group == "bad":
            raise _unknown(match, at)
        else:
            raise SyntaxProblem(
                f"`{match[0]}` cannot stand in a bytes literal", at + match.start(), at + match.end(),
                "write the octets with `\\x..`, or `bytes('..')` around a string",
            )  # fmt: skip
    return bytes(octets + body[last:].encode())


def _unknown(match: re.Match[str], at: int) -> SyntaxProblem:
    return SyntaxProblem(
        f"unknown escape `{match[0]}`", at + match.start(), at + match.end(),
        "write `\\\\` for a backslash, or a raw string such as r'\\d+'",
    )  # fmt: skip


def quote_string(text: str) -> str:
    """A literal that reads back as `text`."""
    return "'" + "".join(map(_quoted, text)) + "'"


def quote_bytes(octets: bytes) -> str:
    """A literal that reads back as `octets`."""
    return "b'" + "".join(
        _quoted(chr(octet)) if 0x20 <= octet < 0x7F else f"\\x{octet:02x}" for octet in octets
    ) + "'"  # fmt: skip


_QUOTED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "'": "\\'"}


def _quoted(char: str) -> str:
    return _QUOTED.get(char) or (char if char.isprintable() else f"\\U{ord(char):08x}")
