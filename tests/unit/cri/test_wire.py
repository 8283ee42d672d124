"""Messages as bytes: nothing is lost, and what is changed is what was named."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.cri.shapes import CREATE_CONTAINER, RESOURCES
from koordpolicy.cri.wire import Field, Form, Message, Shape, WireError, encoded_varint

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5)


def raw_field(number: int, kind: int, payload: bytes) -> bytes:
    data = encoded_varint(number << 3 | kind)
    return data + (encoded_varint(len(payload)) + payload if kind == 2 else payload)


FIELDS = st.one_of(
    st.tuples(st.integers(1, 40), st.just(0), NUMBERS.map(encoded_varint)),
    st.tuples(st.integers(1, 40), st.just(1), st.binary(min_size=8, max_size=8)),
    st.tuples(st.integers(1, 40), st.just(2), st.binary(max_size=30)),
    st.tuples(st.integers(1, 40), st.just(5), st.binary(min_size=4, max_size=4)),
)
MESSAGES = st.lists(FIELDS, max_size=12).map(lambda fields: b"".join(raw_field(*one) for one in fields))


@given(MESSAGES)
def test_what_is_not_changed_keeps_its_bytes(data: bytes) -> None:
    assert Message(RESOURCES, data).encoded() == data


@given(MESSAGES, NUMBERS)
def test_only_the_field_that_is_named_changes(data: bytes, value: int) -> None:
    message = Message(RESOURCES, data)
    message.put_integer("cpu_quota", value)
    assert message.integer("cpu_quota") == value
    number = RESOURCES["cpu_quota"].number
    others = [one for one in Message(RESOURCES, data)._fields if one[0] != number]
    assert [one for one in message._fields if one[0] != number] == others


@given(TEXTS, st.text(max_size=10), NUMBERS)
def test_what_is_put_is_read(texts: dict[str, str], text: str, number: int) -> None:
    message = Message(RESOURCES)
    message.put_texts("unified", texts)
    message.put_text("cpuset_cpus", text)
    message.put_integer("cpu_shares", number)
    again = Message(RESOURCES, message.encoded())
    assert again.texts("unified") == texts
    assert (again.text("cpuset_cpus"), again.integer("cpu_shares")) == (text, number)


@given(st.binary(max_size=40))
def test_bytes_are_a_message_or_told_of(data: bytes) -> None:
    with suppress(WireError):
        assert Message(CREATE_CONTAINER, data).encoded() == data


@pytest.mark.parametrize(
    "data",
    [b"\x80", b"\x0a\x05ab", b"\x0b", b"\x00\x01", b"\x09\x01", b"\x08" + b"\xff" * 10],
    ids=["cut tag", "cut text", "group", "field 0", "cut number", "endless number"],
)
def test_what_is_no_message_is_told_of(data: bytes) -> None:
    with pytest.raises(WireError):
        Message(RESOURCES, data)


def test_known_bytes() -> None:
    """As the specification of protocol buffers has them: field 2 is 150, field 6 is `testing`."""
    message = Message(RESOURCES, bytes.fromhex("109601320774657374696e67"))
    assert (message.integer("cpu_quota"), message.text("cpuset_cpus")) == (150, "testing")
    message.put_integer("cpu_quota", -1)
    assert message.encoded().hex() == "10" + "ff" * 9 + "01" + "320774657374696e67"


def test_what_stands_twice_counts_as_the_specification_says() -> None:
    inner: Shape = {"a": Field(1, Form.INTEGER), "b": Field(2, Form.INTEGER)}
    outer: Shape = {"one": Field(1, Form.MESSAGE, inner)}
    message = Message(outer, raw_field(1, 2, b"\x08\x01") + raw_field(1, 2, b"\x10\x02\x08\x03"))
    found = message.message("one")
    assert (found.integer("a"), found.integer("b")) == (3, 2)
    found.put_integer("b", 0)
    message.put_message("one", found)
    assert len(message._fields) == 1
    assert message.message("one").integer("a") == 3


def test_texts_that_are_no_utf8_come_back_as_they_were() -> None:
    message = Message(RESOURCES, raw_field(9, 2, raw_field(1, 2, b"\xff") + raw_field(2, 2, b"\xfe")))
    assert message.encoded() == (
        before := raw_field(9, 2, raw_field(1, 2, b"\xff") + raw_field(2, 2, b"\xfe"))
    )
    message.put_texts("unified", message.texts("unified"))
    assert message.encoded() == before
