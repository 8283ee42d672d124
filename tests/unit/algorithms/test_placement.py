"""Taints, node affinity, normalisation, sampling, back-off: one node and all nodes agree, and the edges."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from koordpolicy.algorithms.backoff import backoff
from koordpolicy.algorithms.node_affinity import matches, matches_all, preference_all
from koordpolicy.algorithms.normalize import normalized
from koordpolicy.algorithms.sampling import first_found, nodes_to_find
from koordpolicy.algorithms.toleration import avoided, tolerates_all
from koordpolicy.model.node import Taint
from koordpolicy.model.placement import (
    NodeRequirement,
    NodeTerm,
    Placement,
    PreferredTerm,
    Toleration,
    read_placement,
)
from koordpolicy.model.reading import ObjectError

KEYS = st.sampled_from(["zone", "cores", "gpu", "metadata.name"])
VALUES = st.sampled_from(["a", "b", "", "4", "08", "-3", "+5", "x1", "9" * 30, "n1"])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"])
REQUIREMENTS = st.builds(NodeRequirement, KEYS, OPERATORS, st.lists(VALUES, max_size=3).map(tuple))
TERMS = st.builds(
    NodeTerm, st.lists(REQUIREMENTS, max_size=3).map(tuple), st.lists(REQUIREMENTS, max_size=1).map(tuple)
)
NODES = st.lists(st.dictionaries(KEYS, VALUES), max_size=5)


class Labels:
    """Labels of nodes n0, n1, ... as columns."""

    def __init__(self, nodes: Sequence[Mapping[str, str]]) -> None:
        self._nodes = nodes
        self._texts = [""]

    @property
    def count(self) -> int:
        return len(self._nodes)

    def label(self, key: str) -> tuple[NDArray[np.int32], NDArray[np.bool_] | None]:
        codes = np.array([self._number(labels.get(key, "")) for labels in self._nodes], np.int32)
        absent = np.array([key not in labels for labels in self._nodes], np.bool_)
        return codes, absent if absent.any() else None

    def names(self) -> NDArray[np.int32]:
        return np.array([self._number(f"n{at}") for at in range(self.count)], np.int32)

    def code(self, text: str) -> int:
        return self._texts.index(text) if text in self._texts else -1

    def text(self, code: int) -> str:
        return self._texts[code]

    def _number(self, text: str) -> int:
        if text not in self._texts:
            self._texts.append(text)
        return self._texts.index(text)


@given(
    st.builds(
        Placement,
        st.dictionaries(KEYS, VALUES, max_size=2),
        st.none() | st.lists(TERMS, max_size=3).map(tuple),
        st.lists(st.builds(PreferredTerm, st.integers(1, 100), TERMS), max_size=3).map(tuple),
    ),
    NODES,
)
def test_all_nodes_at_once_are_the_nodes_one_by_one(
    placement: Placement, nodes: list[dict[str, str]]
) -> None:
    required = [matches(placement, f"n{at}", labels) for at, labels in enumerate(nodes)]
    assert matches_all(placement, Labels(nodes)).tolist() == required
    wished = [
        sum(
            wish.weight
            for wish in placement.preferred
            if matches(Placement(required=(wish.term,)), f"n{at}", labels)
        )
        for at, labels in enumerate(nodes)
    ]
    assert preference_all(placement.preferred, Labels(nodes)).tolist() == wished


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerates"),
    [
        (Toleration("a", "Equal", "x"), Taint("a", "NoSchedule", "x"), True),
        (Toleration("a", "Equal", "x"), Taint("a", "NoSchedule", "y"), False),
        (Toleration("a", "Exists"), Taint("a", "NoExecute", "y"), True),
        (Toleration("", "Exists"), Taint("b", "NoSchedule"), True),
        (Toleration("", "Equal"), Taint("b", "NoSchedule"), False),
        (Toleration("a", "Exists", effect="NoExecute"), Taint("a", "NoSchedule"), False),
        (Toleration("a", "Near"), Taint("a", "NoSchedule"), False),
    ],
)
def test_tolerations(toleration: Toleration, taint: Taint, tolerates: bool) -> None:
    assert tolerates_all([toleration], [taint]) is tolerates


def test_soft_taints_never_refuse_and_count_where_not_tolerated() -> None:
    taints = [Taint("a", "PreferNoSchedule"), Taint("b", "PreferNoSchedule"), Taint("c", "NoSchedule")]
    assert tolerates_all([], taints[:2])
    assert avoided([], taints) == 2
    assert avoided([Toleration("a", "Exists", effect="PreferNoSchedule")], taints) == 1
    assert avoided([Toleration("a", "Exists", effect="NoSchedule")], taints) == 2


@pytest.mark.parametrize(
    ("how", "scores", "expected"),
    [
        ("None", [1, 7], [1, 7]),
        ("Maximum", [0, 3, 7], [0, 42, 100]),
        ("Maximum", [0, 0], [0, 0]),
        ("ReverseMaximum", [0, 3, 7], [100, 58, 0]),
        ("ReverseMaximum", [0, 0], [100, 100]),
        ("MinMax", [10, 20, 40], [0, 33, 100]),
        ("MinMax", [5, 5], [0, 0]),
        ("ReverseMinMax", [10, 20, 40], [100, 67, 0]),
        ("Maximum", [0.5, 2.0], [25, 100]),
        ("MinMax", [0.0, 0.5, 2.0], [0, 25, 100]),
        ("MinMax", [], []),
        ("Maximum", [], []),
    ],
)
def test_normalisation(how: str, scores: list[float], expected: list[float]) -> None:
    assert normalized(how, np.array(scores)).tolist() == expected


def test_an_unknown_normalisation_is_named() -> None:
    with pytest.raises(ValueError, match="`Middle` is no normalisation"):
        normalized("Middle", np.array([1]))


@given(
    st.sampled_from(["Maximum", "ReverseMaximum", "MinMax", "ReverseMinMax"]),
    st.lists(st.integers(0, 10**9), min_size=1),
)
def test_normalised_scores_are_whole_and_between_0_and_100(how: str, scores: list[int]) -> None:
    found = normalized(how, np.array(scores))
    assert found.dtype == np.int64
    assert found.min() >= 0
    assert found.max() <= 100


@given(st.sets(st.integers(0, 199)), st.integers(0, 199), st.integers(1, 150))
def test_the_search_takes_the_first_feasible_ones_round_the_end(
    feasible: set[int], start: int, wanted: int
) -> None:
    found, seen = first_found(np.array(sorted(feasible), np.int64), 200, start, wanted)
    order = [(start + step) % 200 for step in range(200)]
    expected = [node for node in order if node in feasible][:wanted]
    assert found.tolist() == sorted(expected)
    assert seen == (order.index(expected[-1]) + 1 if len(expected) == wanted else 200)


@given(st.integers(0, 10**6), st.integers(0, 100))
def test_at_least_a_hundred_nodes_are_sought(nodes: int, percentage: int) -> None:
    assert min(nodes, 100) <= nodes_to_find(nodes, percentage) <= nodes


@given(st.integers(0, 10_000), st.integers(0, 10**9), st.integers(0, 10**12))
def test_back_off_grows_up_to_its_maximum(attempts: int, initial: int, maximum: int) -> None:
    waited = backoff(attempts, initial, maximum)
    assert 0 <= waited <= maximum
    assert waited <= backoff(attempts + 1, initial, maximum)


@pytest.mark.parametrize(
    "spec",
    [
        {"tolerations": [{"key": 1}]},
        {"tolerations": "all"},
        {"nodeSelector": {"a": 1}},
        {"schedulingGates": [{"name": 1}]},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}
                        ]
                    }
                }
            }
        },
        {
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": "1"}] * 2}
            }
        },
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}] * 1001}}},
    ],
)
def test_a_malformed_spec_is_an_error_with_its_place(spec: dict[str, object]) -> None:
    with pytest.raises(ObjectError, match=r"^spec\."):
        read_placement({"spec": spec})
