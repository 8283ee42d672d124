"""The encoders library."""

import base64
import binascii

from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.limits import check_text
from koordpolicy.language.cel.library.row import plain, reads_twice
from koordpolicy.language.cel.types import BYTES_VALUE, STRING


def _encode(value: bytes) -> str:
    check_text(len(value) * 4 // 3 + 4)
    return base64.b64encode(value).decode("ascii")


def _decode(text: str) -> bytes:
    padding = "" if "=" in text else "=" * (-len(text) % 4)
    try:
        return base64.b64decode(text + padding, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArgument("the string is no base64") from None


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
