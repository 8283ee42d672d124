"""Characters that look like a space or like nothing, and are letters to YAML."""

from typing import Final
from unicodedata import category, name

_UNSEEN: Final = frozenset(("Cf", "Zs"))


def unseen_in(text: str) -> str | None:
    """The first such character by its name: `U+00A0 (no-break space)`; None where there is none."""
    if text.isascii():
        return None
    found = next((char for char in text if _is_unseen(char)), None)
    return f"U+{ord(found):04X} ({name(found, 'no character').lower()})" if found else None


def in_plain_spaces(text: str) -> str:
    """The text with plain spaces for the odd ones, and without what has no width."""
    return "".join(char if not _is_unseen(char) else " " if category(char) == "Zs" else "" for char in text)


def _is_unseen(char: str) -> bool:
    return not char.isascii() and category(char) in _UNSEEN
