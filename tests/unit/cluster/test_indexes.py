"""Counts by row and what is found by labels: kept while rows and pods come and go, always as if built anew."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.cluster import label_sets
from koordpolicy.cluster.counts import RowCounts
from koordpolicy.cluster.domains import Topology
from koordpolicy.cluster.label_index import LabelIndex
from koordpolicy.cluster.label_sets import PodLabelSets, Wanted
from koordpolicy.cluster.pods import kind_of
from koordpolicy.model.labels import LabelRequirement, LabelSelector, Operator
from koordpolicy.model.neighbours import PodTerm

_LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
_REQUIREMENTS = st.one_of(
    st.builds(
        LabelRequirement,
        st.sampled_from("ab"),
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.frozensets(st.sampled_from("xy"), min_size=1),
    ),
    st.builds(
        LabelRequirement, st.sampled_from("ab"), st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])
    ),
)
_SELECTORS = st.builds(LabelSelector, st.lists(_REQUIREMENTS, max_size=3).map(tuple))
_ROWS = 80


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, _ROWS - 1), st.integers(-2, 3)),
            st.tuples(st.just("drop"), st.integers(0, _ROWS - 1), st.just(0)),
        ),
        max_size=200,
    ),
    st.booleans(),
)
def test_counts_follow_rows(steps: list[tuple[str, int, int]], many: bool) -> None:
    counts, plain = RowCounts(), [0] * _ROWS
    if many:
        for row in range(_ROWS):
            counts.add(row, 1)
            plain[row] += 1
    for what, row, by in steps:
        if what == "add" and row < len(plain):
            plain[row] += by
            assert counts.add(row, by) == plain[row]
        elif what == "drop" and row < len(plain):
            counts.drop(row, len(plain) - 1)
            plain[row] = plain[-1]
            plain.pop()
    assert counts.array(len(plain)).tolist() == plain
    assert sorted(counts.rows()) == [row for row, value in enumerate(plain) if value]
    assert bool(counts) == any(plain)


@given(st.lists(st.one_of(st.tuples(st.integers(0, 9), _LABELS), st.integers(0, 9)), max_size=40))
def test_nodes_of_one_value_are_one_domain(steps: list[tuple[int, dict[str, str]] | int]) -> None:
    topology, plain = Topology(), list[dict[str, str]]()
    topology.of("a")
    for step in steps:
        if isinstance(step, int):
            if step < len(plain):
                topology.drop(step)
                plain[step] = plain[-1]
                plain.pop()
        else:
            row = min(step[0], len(plain))
            plain[row:] = [step[1], *plain[row + 1 :]]
            topology.put(row, step[1])
    for key in ("a", "b"):
        ids = topology.of(key).ids(len(plain)).tolist()
        assert [one > 0 for one in ids] == [key in labels for labels in plain]
        for at, labels in enumerate(plain):
            for other, more in enumerate(plain):
                if key in labels and key in more:
                    assert (ids[at] == ids[other]) == (labels[key] == more[key])
        assert max(ids, default=0) < topology.of(key).size
    assert topology.holders(["a", "b"]).tolist() == [{"a", "b"} <= labels.keys() for labels in plain]


@given(st.lists(_SELECTORS, max_size=6, unique=True), _LABELS, st.integers(0, 5))
def test_whatever_matches_is_found_once(
    selectors: list[LabelSelector], labels: dict[str, str], gone: int
) -> None:
    index: LabelIndex[LabelSelector] = LabelIndex()
    for selector in selectors:
        index.add(selector, selector)
    left = [one for at, one in enumerate(selectors) if at != gone]
    for selector in selectors:
        if selector not in left:
            index.discard(selector, selector)
    found = Counter(index.near(labels))
    assert all(count == 1 for count in found.values())
    assert {one for one in left if one.matches(labels)} <= found.keys() <= set(left)


_PODS = st.tuples(st.sampled_from(["default", "other"]), _LABELS, st.booleans(), st.integers(0, 4))


@given(
    st.lists(_PODS, max_size=20),
    st.lists(_PODS, max_size=10),
    st.lists(
        st.tuples(_SELECTORS, st.sampled_from([{"default"}, {"default", "other"}, set()]), st.booleans()),
        max_size=4,
    ),
    st.sampled_from([{}, {"a": "x"}]),
    st.sampled_from([1, 3, 1_000_000]),
)
def test_selections_count_the_pods_that_they_speak_of(
    before: list[tuple[str, dict[str, str], bool, int]],
    after: list[tuple[str, dict[str, str], bool, int]],
    asked: list[tuple[LabelSelector, set[str], bool]],
    team: dict[str, str],
    most: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_sets, "_MOST_COUNTED", most)
        _count_them(before, after, asked, team)


def _count_them(
    before: list[tuple[str, dict[str, str], bool, int]],
    after: list[tuple[str, dict[str, str], bool, int]],
    asked: list[tuple[LabelSelector, set[str], bool]],
    team: dict[str, str],
) -> None:
    kinds, there = PodLabelSets(), list(before)
    by_labels = LabelSelector((LabelRequirement("a", Operator.EXISTS),))

    def wanted(selector: LabelSelector, named: set[str], alive: bool) -> Wanted:
        term = PodTerm(selector, frozenset(named), None if named else by_labels)
        return Wanted((term,), alive)

    def right() -> None:
        for selector, named, alive in asked:
            expected = [0] * 5
            for namespace, labels, terminating, row in there:
                in_namespace = namespace in named if named else (namespace == "other" and bool(spaces))
                if in_namespace and selector.matches(labels) and not (alive and terminating):
                    expected[row] += 1
            assert kinds.counts(wanted(selector, named, alive)).array(5).tolist() == expected
            assert kinds._counted == sum(len(one.kinds) for one in kinds._selections.values())

    spaces: dict[str, str] = {}
    for namespace, labels, terminating, row in before:
        kinds.add(kind_of(namespace, labels, terminating), labels, row)
    right()
    for namespace, labels, terminating, row in after:
        kinds.add(kind_of(namespace, labels, terminating), labels, row)
        there.append((namespace, labels, terminating, row))
    right()
    spaces = team
    kinds.name_space("other", team)
    right()
    while there:
        namespace, labels, terminating, row = there.pop()
        kinds.remove(kind_of(namespace, labels, terminating), row)
    right()
