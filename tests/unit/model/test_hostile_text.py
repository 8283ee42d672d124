"""What a tenant may write into an annotation or a label: each reader gives a value, or says why not."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.language.facts import TIMES
from koordpolicy.model.estimation import estimation
from koordpolicy.model.facts.load import estimation_facts, threshold_facts
from koordpolicy.model.node import (
    Node,
    amplification_ratios,
    node_reservation,
    normalization_ratio,
    raw_allocatable,
    usage_thresholds,
)
from koordpolicy.model.numa import zone_allocations
from koordpolicy.model.pod import Pod, allocated_zones, owned_cpus
from koordpolicy.model.protocol import (
    CPU_NORMALIZATION_RATIO,
    ESTIMATED_SCALING_FACTORS,
    ESTIMATED_SECONDS_AFTER_SCHEDULED,
    NODE_RESERVATION,
    RAW_ALLOCATABLE,
    RESOURCE_AMPLIFICATION_RATIO,
    RESOURCE_STATUS,
    THIRD_PARTY_ALLOCATIONS,
    USAGE_THRESHOLDS,
)
from koordpolicy.model.reading import ObjectError, embedded, integer, texts
from koordpolicy.model.third_party import third_party_allocations

Read = Callable[[dict[str, str]], object]

READERS: list[tuple[str, Read]] = [
    (NODE_RESERVATION, node_reservation),
    (RAW_ALLOCATABLE, raw_allocatable),
    (RESOURCE_AMPLIFICATION_RATIO, amplification_ratios),
    (CPU_NORMALIZATION_RATIO, normalization_ratio),
    (USAGE_THRESHOLDS, usage_thresholds),
    (USAGE_THRESHOLDS, lambda said: threshold_facts(Node("n", annotations=said), TIMES)),
    (RESOURCE_STATUS, allocated_zones),
    (RESOURCE_STATUS, owned_cpus),
    (RESOURCE_STATUS, zone_allocations),
    (THIRD_PARTY_ALLOCATIONS, third_party_allocations),
    (ESTIMATED_SCALING_FACTORS, estimation),
    (ESTIMATED_SCALING_FACTORS, lambda said: estimation_facts(Pod("p", annotations=said), TIMES)),
    (ESTIMATED_SECONDS_AFTER_SCHEDULED, estimation),
]

_FIELDS = (
    "resources", "reservedCPUs", "applyPolicy", "cpu", "usageThresholds", "aggregatedUsage", "node", "cpuset",
    "usageAggregatedDuration", "numaNodeResources", "allocations", "priority", "name",
)  # fmt: skip
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, -1, 2**63, -(2**63) - 1, 10**400, 1e300, "8Ei", "9e999", "-1", "0-65535", "9" * 99 + "h"]
    ),
    st.text(max_size=8),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=4),
    max_leaves=12,
)
_SOURCES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "9" * 5000,
            "-" * 20,
            "[" * 5000,
            '{"a":' * 5000,
            "1e999",
            "NaN",
            '{"cpu": 1e999}',
            '{"cpu": "\\ud800"}',
        ]
    ),
    _VALUES.map(json.dumps),
)


@given(st.sampled_from(READERS), _SOURCES)
def test_every_reader_of_an_annotation_gives_a_value_or_an_object_error(
    reader: tuple[str, Read], source: str
) -> None:
    key, read = reader
    try:
        read({key: source})
    except ObjectError as error:
        str(error).encode()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("9" * 400, "more than 19 digits"),
        ('{"factor": -' + "9" * 400 + "}", "more than 19 digits"),
        ('{"ratio": 1e999}', "beyond the range of a double"),
        ('{"text": "\\ud83d"}', "surrogates"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_json_in_an_annotation_has_bounds(source: str, words: str) -> None:
    with pytest.raises(ObjectError, match=words):
        embedded(source, "annotation")


def test_json_in_an_annotation_may_hold_pairs_of_surrogates() -> None:
    assert embedded(json.dumps({"text": "\U0001f600"}), "annotation") == {"text": "\U0001f600"}


@pytest.mark.parametrize("labels", [{"a": "\ud800"}, {"\udfff": "a"}, {1: "a"}, {"a": 1}])
def test_labels_are_texts_that_utf_8_can_write(labels: Any) -> None:
    with pytest.raises(ObjectError, match=r"^metadata\.labels") as raised:
        texts({"labels": labels}, "labels", "metadata")
    if "half" in str(raised.value):
        assert "\ud800" not in str(raised.value).replace("\ud800", "")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**400])
def test_whole_numbers_have_64_bits(number: int) -> None:
    with pytest.raises(ObjectError, match="beyond 64 bits"):
        integer({"priority": number}, "priority", "spec")
