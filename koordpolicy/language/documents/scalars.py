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
_LONGEST_INT = 250
_KEPT_DIGITS = 15
"""Digits that every float keeps."""
_SHOWN_DIGITS = 40


class NotANumberHere(ValueError):
    """The scalar is a number that no policy value can hold; the text says why."""


def plain(text: str) -> Scalar:
    """The value of a plain scalar without tag.

    Raises `NotANumberHere` for infinities, NaN, integers of hundreds of digits, and fractions with more digits than are kept.
    """
    if not text:
        return None
    if text[0] not in _MAY_MEAN_MORE:
        return text
    if text in WORDS:
        return WORDS[text]
    if _INT.match(text):
        return _whole(text, 10)
    if _FLOAT.match(text):
        return _finite(text)
    if _OCTAL.match(text):
        return _whole(text, 8)
    if _HEX.match(text):
        return _whole(text, 16)
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


def _whole(text: str, base: int) -> int:
    """An integer; long ones are refused, since they are slow to read and no float could hold them."""
    if len(text) > _LONGEST_INT:
        raise NotANumberHere(f"`{text[:10]}...` is a number of {len(text)} digits")
    return int(text, base)


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotANumberHere(f"`{text}` is not a finite number")
    if len(text) > _KEPT_DIGITS and _digits(text) != _digits(kept := repr(value)):
        shown = text if len(text) <= _SHOWN_DIGITS else f"{text[:_SHOWN_DIGITS]}..."
        raise NotANumberHere(f"`{shown}` has more digits than a number keeps: it would be `{kept}`")
    return value


def _digits(number: str) -> str:
    """The digits of a decimal number that tell it from others, whatever its exponent."""
    return number.lower().partition("e")[0].lstrip("+-").replace(".", "").strip("0")
