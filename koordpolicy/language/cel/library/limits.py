"""How large a value may grow.

Facts and texts within these bounds are ordinary; beyond them only a mistake or an attack lies.
"""

from koordpolicy.language.cel.errors import LimitExceeded

MAX_TEXT = 1_000_000
"""Code points of a string, or octets of bytes."""

MAX_LIST = 200_000
"""Elements of a list or map that an expression makes."""

MAX_PATTERN = 1_000
"""Code points of a regular expression."""


def bounded_text(text: str) -> str:
    """The text itself. Raises LimitExceeded when it is too long."""
    if len(text) > MAX_TEXT:
        raise LimitExceeded(f"a string of more than {MAX_TEXT} characters")
    return text


def check_text(length: int) -> None:
    """Refuse a text of `length` characters before it is made. Raises LimitExceeded."""
    if length > MAX_TEXT:
        raise LimitExceeded(f"a string of more than {MAX_TEXT} characters")


def check_list(length: int) -> None:
    """Refuse a list of `length` elements before it is made. Raises LimitExceeded."""
    if length > MAX_LIST:
        raise LimitExceeded(f"a list of more than {MAX_LIST} elements")
