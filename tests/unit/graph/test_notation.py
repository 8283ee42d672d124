"""Values as policies write them can be read again."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph.notation import CUT, TooManyElements, about, exactly, flow, plain_number, show, written
from koordpolicy.language.cel.types import (
    AMOUNT,
    BANDWIDTH,
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    MEMORY,
    PERCENT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    optional_of,
)
from koordpolicy.language.cel.values import NONE, Duration, Optional, Timestamp, Value
from koordpolicy.language.documents import read_documents
from koordpolicy.language.kinds import literal_value

WHOLE = st.integers(-(10**15), 10**15)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    BOOL: st.booleans(),
    INT: st.integers(-(2**63), 2**63 - 1),
    CPU: WHOLE.filter(lambda number: abs(number) < 10**12),
    MEMORY: WHOLE,
    BANDWIDTH: WHOLE,
    DURATION: st.integers(-(10**17), 10**17).map(Duration),
    TIMESTAMP: st.integers(0, 4 * 10**18).map(Timestamp),
    STRING: st.text(max_size=40),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    PERCENT: st.integers(-(10**9), 10**9).map(lambda points: points / 1000),
}


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_what_is_written_reads_as_the_value(type: Type) -> None:
    @given(VALUES[type])
    def holds(value: Any) -> None:
        assert literal_value(type, written(type, value)) == value

    holds()


@given(st.lists(VALUES[CPU], max_size=5), st.dictionaries(st.text(max_size=8), VALUES[MEMORY], max_size=4))
def test_lists_and_maps_are_written_element_by_element(cpus: list[int], sizes: dict[str, int]) -> None:
    assert literal_value(list_of(CPU), written(list_of(CPU), cpus)) == cpus
    sizes.pop("cel", None)  # a mapping with that key would be an expression
    assert literal_value(map_of(STRING, MEMORY), written(map_of(STRING, MEMORY), sizes)) == sizes


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc: -#{}[],'\"", max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_flow_text_is_yaml_for_the_same_data(plain: object) -> None:
    found = Diagnostics()
    text = f"value: {flow(plain)}\n"
    documents = read_documents("x.yaml", text, found)
    assert not len(found), text
    again = documents[0].data["value"]
    assert again == plain
    assert type(again) is type(plain)


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        (CPU, 6500, "6500m"),
        (CPU, 4000, "4"),
        (CPU, 0, "0"),
        (CPU, -500, "-500m"),
        (MEMORY, 8 << 30, "8Gi"),
        (MEMORY, 200 << 20, "200Mi"),
        (MEMORY, 1000, "1000"),
        (MEMORY, 0, "0"),
        (BANDWIDTH, 50_000_000, "50M"),
        (PERCENT, 65.0, "65%"),
        (PERCENT, 0.5, "0.5%"),
        (DURATION, Duration(5_400_000_000_000), "1h30m"),
        (DURATION, Duration(0), "0s"),
        (DURATION, Duration(-250_000_000), "-250ms"),
        (TIMESTAMP, Timestamp(0), "1970-01-01T00:00:00Z"),
        (DOUBLE, 0.5, "0.5"),
        (STRING, "true", '"true"'),
        (STRING, "a: b", '"a: b"'),
        (STRING, "LSR", "LSR"),
        (STRING, "", '""'),
        (optional_of(CPU), Optional(2000), "2"),
        (optional_of(CPU), NONE, "nothing"),
        (CPU, None, "nothing"),
        (list_of(STRING), ["a", "b c"], "[a, b c]"),
        (map_of(STRING, AMOUNT), {"cpu": 1500, "memory": 1024}, "{cpu: 1500m, memory: 1024}"),
        (DYN, [1, 2.5, "x"], "[1, 2.5, x]"),
    ],
)
def test_values_look_familiar(type: Type, value: object, text: str) -> None:
    assert show(type, value) == text


def test_odd_sizes_are_rounded_for_people() -> None:
    assert about(MEMORY, 82_463_372_083) == "about 76.8Gi"
    assert about(MEMORY, 64 << 30) == "64Gi"
    assert about(MEMORY, 1000) == "1000"
    assert about(CPU, 1500) == "1500m"


def test_numbers_have_no_exponent() -> None:
    assert [plain_number(number) for number in (1e-9, 1e15, -0.0, 65.0)] == [
        "0.000000001",
        "1000000000000000",
        "0",
        "65",
    ]


def doubled(levels: int) -> list[Value]:
    """Lists of two that are one: cheap to hold, and 2 ** levels numbers when written out."""
    value: list[Value] = [1, 1]
    for _ in range(levels):
        value = [value, value]
    return value


def test_a_value_that_unfolds_without_end_is_cut() -> None:
    deep = doubled(300)
    assert len(show(DYN, deep)) < 2_000
    assert CUT in show(DYN, deep)
    assert CUT in json.dumps(written(DYN, {"a": doubled(40)}), ensure_ascii=False)
    with pytest.raises(TooManyElements):
        exactly(DYN, doubled(40))


def test_large_values_are_shown_by_their_beginning() -> None:
    assert show(DYN, list(range(150_000))).endswith(f"98, 99, {CUT}]")
    assert show(DYN, "x" * 5_000) == "x" * 1_000 + CUT
    assert show(DYN, {f"k{at}": at for at in range(200)}).endswith(f"k99: 99, {CUT}: {CUT}}}")
    assert written(DYN, list(range(9_000))) == list(range(9_000)) == exactly(DYN, list(range(9_000)))
