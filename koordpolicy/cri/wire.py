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
_KEY: Final = 1
_VALUE: Final = 2
"""Fields of a map's entry."""
_ONE_BYTE: Final = tuple(bytes((number,)) for number in range(0x80))


class WireError(ValueError):
    """Bytes that are no message."""


class Form(Enum):
    """What a field holds."""

    INTEGER = auto()
    """A whole number, written without further ado: int32, int64, uint32, uint64, bool."""
    TEXT = auto()
    BYTES = auto()
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
        self._fields = _split(data)

    def encoded(self) -> bytes:
        """The bytes: those it was made of, where nothing was changed."""
        return b"".join(tag + payload for _, tag, payload in self._fields)

    def has(self, name: str) -> bool:
        """Whether the field stands there at all."""
        number = self.shape[name].number
        return any(one == number for one, _, _ in self._fields)

    def integer(self, name: str) -> int:
        """A whole number with its sign; 0 where it is not there."""
        found = self._last(name, _VARINT)
        if found is None:
            return 0
        value, _ = _varint(found, 0)
        return value - _RANGE if value >= _SIGN else value

    def text(self, name: str) -> str:
        """A text; empty where it is not there."""
        return _text(self.data(name))

    def data(self, name: str) -> bytes:
        """Bytes; none where it is not there."""
        found = self._last(name, _LENGTH)
        return b"" if found is None else _content(found)

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
        self.put_data(name, _bytes(value))

    def put_data(self, name: str, value: bytes) -> None:
        """Set bytes; none take the field away."""
        self._put(name, _LENGTH, [value] if value else [])

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

    def take(self, name: str, other: "Message", of: str) -> None:
        """Set a field to what another message has in one of its own of the same form, byte for byte: a list of `key` and `value` is a map, too."""
        number = self.shape[name].number
        tag = encoded_varint(number << 3 | _LENGTH)
        self._replace(number, [(number, tag, one) for one in other._payloads(of, _LENGTH)])  # noqa: SLF001 - of one class

    def same(self, name: str, other: "Message", of: str) -> bool:
        """Whether a field has the very bytes of one of another message."""
        return list(self._payloads(name, _LENGTH)) == list(other._payloads(of, _LENGTH))  # noqa: SLF001 - of one class

    def _inner(self, name: str) -> Shape:
        return self.shape[name].shape or {}

    def _last(self, name: str, kind: int) -> bytes | None:
        """The payload that counts where several stand there."""
        number = self.shape[name].number
        for one, tag, payload in reversed(self._fields):
            if one == number and tag[0] & 7 == kind:
                return payload
        return None

    def _payloads(self, name: str, kind: int) -> Iterator[bytes]:
        number = self.shape[name].number
        for one, tag, payload in self._fields:
            if one == number and tag[0] & 7 == kind:
                yield payload

    def _contents(self, name: str) -> Iterator[bytes]:
        for payload in self._payloads(name, _LENGTH):
            yield _content(payload)

    def _put(self, name: str, kind: int, payloads: list[bytes]) -> None:
        number = self.shape[name].number
        tag = encoded_varint(number << 3 | kind)
        self._replace(
            number,
            [(number, tag, encoded_varint(len(one)) + one if kind == _LENGTH else one) for one in payloads],
        )

    def _replace(self, number: int, made: list[tuple[int, bytes, bytes]]) -> None:
        """Put fields where that of their number stood first, or at the end."""
        at = next((at for at, field in enumerate(self._fields) if field[0] == number), None)
        if at is None:
            self._fields += made
            return
        kept = [field for field in self._fields[at:] if field[0] != number]
        self._fields[at:] = [*made, *kept]


def encoded_varint(value: int) -> bytes:
    """A whole number as protocol buffers write it; negative ones take ten bytes."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    value %= _RANGE
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _split(data: bytes) -> list[tuple[int, bytes, bytes]]:
    """Number, bytes of the tag, bytes of the payload with its length. Raises `WireError`.

    Nearly all numbers are of one byte, and are read without a call.
    """
    found = []
    at, end = 0, len(data)
    while at < end:
        tag, after = data[at], at + 1
        if tag >= 0x80:
            tag, after = _varint(data, at)
        kind, number = tag & 7, tag >> 3
        if not 0 < number < 1 << 29:
            raise WireError(f"no field has the number {number}")
        if kind == _LENGTH:
            if after < end and data[after] < 0x80:
                stop = after + 1 + data[after]
            else:
                length, begin = _varint(data, after)
                stop = begin + length
        elif kind == _VARINT:
            _, stop = _varint(data, after)
        elif kind in _FIXED:
            stop = after + _FIXED[kind]
        else:
            raise WireError(f"field {number} is of a sort that proto3 does not have: {kind}")
        if stop > end:
            raise WireError(f"field {number} ends after the message")
        found.append((number, data[at:after], data[after:stop]))
        at = stop
    return found


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
    """An entry of a map of texts."""
    key = value = b""
    for number, tag, payload in _split(data):
        if tag[0] & 7 == _LENGTH:
            if number == _KEY:
                key = _content(payload)
            elif number == _VALUE:
                value = _content(payload)
    return _text(key), _text(value)


def _content(payload: bytes) -> bytes:
    """A payload without its length."""
    return payload[1:] if payload[0] < 0x80 else payload[_varint(payload, 0)[1] :]


def _pair(key: str, value: str) -> bytes:
    return _put_one(_KEY, _bytes(key)) + _put_one(_VALUE, _bytes(value))


def _put_one(number: int, data: bytes) -> bytes:
    return encoded_varint(number << 3 | _LENGTH) + encoded_varint(len(data)) + data if data else b""
