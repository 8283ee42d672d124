"""What a plain scalar means: the core schema of YAML 1.2, nothing more."""

import re

from koordpolicy.language.documents.tree import Scalar

WORDS: dict[str, Scalar] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
"""Plain scalars that are no strings by their word alone."""
_INT = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
_MAY_MEAN_MORE = frozenset("0123456789+-.tTfFnN~")
_LONGEST_INT = 25


class NotANumberHere(ValueError):
    """The scalar is a number that no policy value can hold; the text says why."""


def plain(text: str) -> Scalar:
    """The value of a plain scalar without tag.

    Raises `NotANumberHere` for infinities, NaN and integers beyond 64 bits.
    """
    if not text:
        return None
    if text[0] not in _MAY_MEAN_MORE:
        return text
    if text in WORDS:
        return WORDS[text]
    if _INT.match(text):
        return _bounded(text, 10)
    if _FLOAT.match(text):
        return _finite(text)
    if _OCTAL.match(text):
        return _bounded(text, 8)
    if _HEX.match(text):
        return _bounded(text, 16)
    if _SPECIAL.match(text):
        raise NotANumberHere(f"`{text}` is not a finite number")
    return text


def tagged(text: str, tag: str) -> Scalar | None:
    """The value of a scalar with one of the core tags `str`, `int`, `float`, `bool`, `null`.

    Raises `ValueError` where the text is not of that type.
    """
    if tag == "str":
        return text
    value = plain(text)
    if tag == "float" and type(value) is int:
        return float(value)
    if type(value).__name__ != {"null": "NoneType"}.get(tag, tag):
        raise ValueError(f"`{text}` is not of type {tag}")
    return value


def _bounded(text: str, base: int) -> int:
    """An integer of at most 64 bits; the length is checked first, since long ones are slow to read."""
    value = int(text, 0 if base != 10 else 10) if len(text) <= _LONGEST_INT else None
    if value is None or not -(2**63) <= value < 2**64:
        shown = text if len(text) <= _LONGEST_INT else f"{text[:10]}..."
        raise NotANumberHere(f"`{shown}` does not fit in 64 bits")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotANumberHere(f"`{text}` is not a finite number")
    return value
