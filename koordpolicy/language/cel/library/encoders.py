"""The encoders library."""

import base64
import re

from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.limits import check_text
from koordpolicy.language.cel.library.row import plain, reads_twice
from koordpolicy.language.cel.types import BYTES_VALUE, STRING


def _encode(value: bytes) -> str:
    check_text(len(value) * 4 // 3 + 4)
    return base64.b64encode(value).decode("ascii")


_BASE64 = re.compile(r"([A-Za-z0-9+/]*)(={0,2})")
_PADDING = frozenset(((0, 0), (2, 0), (2, 2), (3, 0), (3, 1)))
"""Characters in the last group, none for four, and how many signs of padding may follow them."""


def _decode(text: str) -> bytes:
    """Padding is there in full or not at all; ends of lines do not count."""
    joined = text.replace("\r", "").replace("\n", "")
    found = _BASE64.fullmatch(joined)
    if found is None or (len(found[1]) % 4, len(found[2])) not in _PADDING:
        raise InvalidArgument("the string is no base64")
    return base64.b64decode(joined + "=" * (-len(joined) % 4))


LIBRARY: tuple[Function, ...] = (
    plain(
        "base64.encode", "encoders", "bytes as base64 text", "base64.encode(b'hello') == 'aGVsbG8='",
        (BYTES_VALUE,), STRING, _encode, reads_twice(0),
    ),
    plain(
        "base64.decode", "encoders", "the bytes of a base64 text, padding optional",
        "base64.decode('aGVsbG8') == b'hello'", (STRING,), BYTES_VALUE, _decode, reads_twice(0),
    ),
)  # fmt: skip
