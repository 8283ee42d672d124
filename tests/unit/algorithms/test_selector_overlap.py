"""Selectors that meet: found as by trying all of them, and given up where that is too much."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.selector_overlap import (
    ComparisonLimitError,
    Comparisons,
    SelectorIndex,
    label_sets,
)
from koordpolicy.algorithms.strategy_checks import CheckedNode, check_config
from koordpolicy.model.labels import read_selector

_KEYS = st.sampled_from("abc")
_VALUES = st.lists(st.sampled_from("123"), min_size=1, max_size=3)
_EXPRESSIONS = st.one_of(
    st.builds(lambda key, values, operator: {"key": key, "operator": operator, "values": values}, _KEYS, _VALUES, st.sampled_from(["In", "NotIn"])),
    st.builds(lambda key, operator: {"key": key, "operator": operator}, _KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)  # fmt: skip
_SELECTORS = st.builds(
    lambda labels, expressions: {"matchLabels": labels, "matchExpressions": expressions},
    st.dictionaries(_KEYS, st.sampled_from("123"), max_size=2),
    st.lists(_EXPRESSIONS, max_size=3),
)


@given(st.lists(_SELECTORS, max_size=8), st.dictionaries(_KEYS, st.sampled_from("123")))
def test_the_index_finds_what_trying_all_finds(written: list[Any], labels: dict[str, str]) -> None:
    selectors = [read_selector(one) for one in written]
    expected = [number for number, one in enumerate(selectors) if one.matches(labels)]
    assert SelectorIndex(selectors).matching(labels, Comparisons()) == expected


def test_values_of_expressions_advance_together() -> None:
    written = {
        "matchLabels": {"l": "x"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["1", "2"]},
            {"key": "b", "operator": "NotIn", "values": ["3", "4"]},
            {"key": "c", "operator": "Exists"},
        ],
    }
    assert list(label_sets(written)) == [
        {"l": "x", "c": "", "a": "1", "b": "3"},
        {"l": "x", "c": "", "a": "2", "b": "4"},
    ]


def test_comparisons_end() -> None:
    index = SelectorIndex([read_selector({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]})])
    comparisons = Comparisons(3)
    assert index.matching({}, comparisons) == [0]
    with pytest.raises(ComparisonLimitError):
        index.matching({}, comparisons)


def _config(entries: list[Any]) -> dict[str, str]:
    return {"cpu-burst-config": json.dumps({"nodeStrategies": entries})}


def test_ten_thousand_entries_are_compared_with_each_other_and_with_nodes() -> None:
    entries = [
        {"name": f"n{number}", "nodeSelector": {"matchLabels": {"host": str(number)}}}
        for number in range(10_000)
    ]
    nodes = [CheckedNode(f"n{number}", {"host": str(number), "pool": "a"}) for number in range(5_000)]
    assert check_config(_config(entries), {}, nodes) is None
    entries.append({"name": "all", "nodeSelector": {"matchLabels": {"pool": "a"}}})
    problem = check_config(_config(entries), {}, nodes)
    assert problem is not None
    assert problem.message == "cpu-burst-config: the entries n0, all all select the node n0"


HOSTILE: dict[str, list[Any]] = {
    "every selector excludes what all the others speak of": [
        {
            "name": f"n{number}",
            "nodeSelector": {
                "matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["a", "b", "c"]}]
            },
        }
        for number in range(10_000)
    ],
    "values whose counts have no common divisor": [
        {
            "name": "n",
            "nodeSelector": {
                "matchExpressions": [
                    {"key": f"k{count}", "operator": "In", "values": [str(one) for one in range(count)]}
                    for count in (997, 991, 983, 977)
                ]
            },
        }
    ],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_would_take_for_ever_is_refused_and_says_so(case: str) -> None:
    problem = check_config(_config(HOSTILE[case]), {})
    assert problem is not None
    assert "more sets of labels than can be compared" in problem.message


def test_thousands_of_entries_that_meet_are_not_all_named() -> None:
    entries = [{"name": f"n{number}", "nodeSelector": {"matchLabels": {"x": "1"}}} for number in range(5_000)]
    problem = check_config(_config(entries), {})
    assert problem is not None
    assert problem.message.endswith("n9 and 4990 more select the same nodes")


def test_bandwidths_of_many_entries_are_looked_up() -> None:
    entries = [
        {"name": f"n{number}", "nodeSelector": {"matchLabels": {"host": str(number)}}}
        for number in range(5_000)
    ]
    shares = {"lsClass": {"networkQOS": {"egressRequest": 50}}}
    data = {
        "system-config": json.dumps(
            {"nodeStrategies": [{**one, "totalNetworkBandwidth": "1G"} for one in entries]}
        ),
        "resource-qos-config": json.dumps({"nodeStrategies": [{**one, **shares} for one in entries]}),
    }
    assert check_config(data, {}) is None


@pytest.mark.parametrize("needed", [False, True])
def test_classes_of_isolation_without_a_bandwidth_to_compare_with(needed: bool) -> None:
    shares = {"lsClass": {"networkQOS": {"egressRequest": 60}}}
    entry = {"name": "a", "nodeSelector": {"matchLabels": {"x": "1"}}, **shares}
    data = {"resource-qos-config": json.dumps({"clusterStrategy": shares, "nodeStrategies": [entry]})}
    problem = check_config(data, {}, system_needed=needed)
    assert (problem.reason if problem else "") == ("ParseConfigFail" if needed else "")
