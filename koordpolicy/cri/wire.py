"""Protocol buffers as bytes with places: what nobody names is kept as it came, in its order.

A message of a library is decoded and written anew: fields it does not know move to the end, maps change their order. A proxy has to
hand on what it does not change byte for byte, so here a message is the list of its fields' bytes, and a change replaces those of one.
The encoding is that of the specification of protocol buffers (proto3).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_FIXED32: Final = 5
_FIXED: Final = {_FIXED64: 8, _FIXED32: 4}
_LONGEST_VARINT: Final = 10
_SIGN: Final = 1 << 63
_RANGE: Final = 1 << 64
_KEY, _VALUE = 1, 2
"""Fields of a map's entry."""


class WireError(ValueError):
    """Bytes that are no message."""


class Form(Enum):
    """What a field holds."""

    INTEGER = auto()
    """A whole number, written without further ado: int32, int64, uint32, uint64, bool."""
    TEXT = auto()
    TEXTS = auto()
    """A map of texts."""
    LIST = auto()
    """Texts."""
    MESSAGE = auto()
    MESSAGES = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """A field's number, what it holds, and the shape of that if it is a message."""

    number: int
    form: Form
    shape: "Shape | None" = None


Shape: TypeAlias = Mapping[str, Field]
"""The fields of a message that somebody asks for, by name."""


class Message:
    """A message as a list of fields, each with its bytes. What is asked for by name stands in `shape`.

    Texts that are no UTF-8 come back as they were. Raises `WireError` where bytes are no message, also of one within it when that
    is asked for; `KeyError` for a name that the shape does not have.
    """

    __slots__ = ("_fields", "shape")

    def __init__(self, shape: Shape, data: bytes = b"") -> None:
        self.shape = shape
        self._fields = list(_split(data))

    def encoded(self) -> bytes:
        """The bytes: those it was made of, where nothing was changed."""
        return b"".join(tag + payload for _, tag, payload in self._fields)

    def has(self, name: str) -> bool:
        """Whether the field stands there at all."""
        number = self.shape[name].number
        return any(one == number for one, _, _ in self._fields)

    def integer(self, name: str) -> int:
        """A whole number with its sign; 0 where it is not there."""
        found = list(self._payloads(name, _VARINT))
        if not found:
            return 0
        value, _ = _varint(found[-1], 0)
        return value - _RANGE if value >= _SIGN else value

    def text(self, name: str) -> str:
        """A text; empty where it is not there."""
        found = list(self._contents(name))
        return _text(found[-1]) if found else ""

    def texts(self, name: str) -> dict[str, str]:
        """A map of texts."""
        return dict(_entry(one) for one in self._contents(name))

    def listed(self, name: str) -> list[str]:
        """Texts in their order."""
        return [_text(one) for one in self._contents(name)]

    def message(self, name: str) -> "Message":
        """A message within this one; an empty one where it is not there. It is a copy: `put_message` puts it back."""
        return Message(
            self._inner(name), b"".join(self._contents(name))
        )  # what stands there twice counts as one

    def messages(self, name: str) -> list["Message"]:
        """Messages in their order, copies all."""
        return [Message(self._inner(name), one) for one in self._contents(name)]

    def put_integer(self, name: str, value: int) -> None:
        """Set a whole number; 0 takes the field away, as the specification has it."""
        self._put(name, _VARINT, [encoded_varint(value)] if value else [])

    def put_text(self, name: str, value: str) -> None:
        """Set a text; an empty one takes the field away."""
        self._put(name, _LENGTH, [_bytes(value)] if value else [])

    def put_texts(self, name: str, value: Mapping[str, str]) -> None:
        """Set a map of texts."""
        self._put(name, _LENGTH, [_pair(*one) for one in value.items()])

    def put_list(self, name: str, value: Iterable[str]) -> None:
        """Set a list of texts."""
        self._put(name, _LENGTH, [_bytes(one) for one in value])

    def put_message(self, name: str, value: "Message") -> None:
        """Set a message within this one, an empty one too."""
        self._put(name, _LENGTH, [value.encoded()])

    def put_messages(self, name: str, value: Iterable["Message"]) -> None:
        """Set a list of messages."""
        self._put(name, _LENGTH, [one.encoded() for one in value])

    def _inner(self, name: str) -> Shape:
        return self.shape[name].shape or {}

    def _payloads(self, name: str, kind: int) -> Iterator[bytes]:
        number = self.shape[name].number
        for one, tag, payload in self._fields:
            if one == number and tag[0] & 7 == kind:
                yield payload

    def _contents(self, name: str) -> Iterator[bytes]:
        for payload in self._payloads(name, _LENGTH):
            _, at = _varint(payload, 0)
            yield payload[at:]

    def _put(self, name: str, kind: int, payloads: list[bytes]) -> None:
        """Put payloads where the field stood first, or at the end."""
        number = self.shape[name].number
        tag = encoded_varint(number << 3 | kind)
        made = [(number, tag, encoded_varint(len(one)) + one if kind == _LENGTH else one) for one in payloads]
        at = next((at for at, field in enumerate(self._fields) if field[0] == number), len(self._fields))
        kept = self._fields[:at] + made
        self._fields = kept + [field for field in self._fields[at:] if field[0] != number]


def encoded_varint(value: int) -> bytes:
    """A whole number as protocol buffers write it; negative ones take ten bytes."""
    value %= _RANGE
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _split(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, bytes of the tag, bytes of the payload with its length. Raises `WireError`."""
    at, end = 0, len(data)
    while at < end:
        tag, after = _varint(data, at)
        kind, number = tag & 7, tag >> 3
        if not 0 < number < 1 << 29:
            raise WireError(f"no field has the number {number}")
        if kind == _VARINT:
            _, stop = _varint(data, after)
        elif kind == _LENGTH:
            length, begin = _varint(data, after)
            stop = begin + length
        elif kind in _FIXED:
            stop = after + _FIXED[kind]
        else:
            raise WireError(f"field {number} is of a sort that proto3 does not have: {kind}")
        if stop > end:
            raise WireError(f"field {number} ends after the message")
        yield number, data[at:after], data[after:stop]
        at = stop


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A whole number without sign, and where it ends. Raises `WireError`."""
    value = shift = 0
    for place in range(at, min(at + _LONGEST_VARINT, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value % _RANGE, place + 1
        shift += 7
    raise WireError("a number does not end")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _entry(data: bytes) -> tuple[str, str]:
    entry = Message(_ENTRY, data)
    return entry.text("key"), entry.text("value")


def _pair(key: str, value: str) -> bytes:
    entry = Message(_ENTRY)
    entry.put_text("key", key)
    entry.put_text("value", value)
    return entry.encoded()


_ENTRY: Final[Shape] = {"key": Field(_KEY, Form.TEXT), "value": Field(_VALUE, Form.TEXT)}
