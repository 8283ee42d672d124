"""What quotas request, use and may use: against what the words say, worked out anew from the root down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Final, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.algorithms.quota_split import QuotaShare, split
from koordpolicy.algorithms.quota_sums import QuotaSums, QuotaTerms
from koordpolicy.model.amounts import add_to
from koordpolicy.model.protocol import ROOT_QUOTA
from koordpolicy.model.reading import Amounts

NAMES: Final = tuple("abcdefg")
KEYS: Final = ("cpu", "memory")

amounts = st.fixed_dictionaries({}, optional={key: st.integers(0, 40) for key in KEYS})
whole = st.fixed_dictionaries({key: st.integers(0, 40) for key in KEYS})


@st.composite
def terms(draw: st.DrawFn, own: st.SearchStrategy[dict[str, int]] = amounts) -> QuotaTerms:
    """A quota anywhere: below the root, another one, one that is not there, itself."""
    return QuotaTerms(
        draw(st.sampled_from(NAMES)),
        draw(st.sampled_from((ROOT_QUOTA, ROOT_QUOTA, *NAMES))),
        draw(own),
        draw(own),
        draw(own),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@dataclass
class Model:
    """The same quotas as plain facts, with what own pods of each request and use."""

    quotas: dict[str, QuotaTerms] = field(default_factory=dict)
    request: dict[str, dict[str, int]] = field(default_factory=dict)
    used: dict[str, dict[str, int]] = field(default_factory=dict)

    def anew(self, capacity: Amounts, order: Sequence[str]) -> QuotaSums:
        sums = QuotaSums(capacity)
        for name in order:
            sums.put(self.quotas[name])
            sums.add_request(name, self.request[name])
            sums.add_used(name, self.used[name])
        return sums


def picture(sums: QuotaSums) -> Mapping[str, object]:
    return {
        one.terms.name: (
            one.child_request,
            one.request,
            one.limited,
            one.used,
            one.guaranteed,
            sums.runtime(one.terms.name),
            sums.scaled_min(one.terms.name),
        )
        for one in sums
    }


Step: TypeAlias = QuotaTerms | tuple[str, str, dict[str, int]]

steps = st.lists(
    st.one_of(
        terms(), st.tuples(st.sampled_from(NAMES), st.sampled_from(("remove", "request", "use")), amounts)
    ),
    max_size=25,
)


@given(steps, amounts, st.randoms(use_true_random=False))
def test_the_order_of_events_does_not_matter(events: list[Step], capacity: Amounts, draw: Random) -> None:
    sums, model = QuotaSums(capacity), Model()
    for one in events:
        if isinstance(one, QuotaTerms):
            model.quotas[one.name] = one
            model.request.setdefault(one.name, {})
            model.used.setdefault(one.name, {})
            sums.put(one)
            continue
        name, what, more = one
        if name not in model.quotas:
            continue
        if what == "remove":
            sums.remove(name)
            for part in (model.quotas, model.request, model.used):
                part.pop(name)
        elif what == "request":
            add_to(model.request[name], more)
            sums.add_request(name, more)
        else:
            add_to(model.used[name], more)
            sums.add_used(name, more)
        picture(sums)  # whatever is kept of what was asked must not outlive a change
    order = list(model.quotas)
    draw.shuffle(order)
    assert _without_circles(model) is False or picture(sums) == picture(model.anew(capacity, order))


def _without_circles(model: Model) -> bool:
    """Which of several quotas in a circle is left out depends on who came last."""
    for name in model.quotas:
        seen, at = set[str](), name
        while at in model.quotas:
            if at in seen:
                return False
            seen.add(at)
            at = model.quotas[at].parent
    return True


def test_a_circle_is_left_out_until_it_is_none() -> None:
    sums = QuotaSums({"cpu": 10})
    sums.put(QuotaTerms("a", "b", max={"cpu": 10}, weight={"cpu": 1}))
    sums.put(QuotaTerms("b", "a", max={"cpu": 10}, weight={"cpu": 1}))
    sums.add_request("a", {"cpu": 4})
    assert sums.path("a") is None
    assert sums.runtime("a") == {"cpu": 0}, "nothing is shared with it"
    sums.put(QuotaTerms("b", ROOT_QUOTA, max={"cpu": 10}, weight={"cpu": 1}))
    assert [one.terms.name for one in sums.path("a") or ()] == ["b", "a"]
    assert sums.runtime("a") == {"cpu": 4}


def test_a_quota_that_goes_and_comes_back_has_those_below_it_again() -> None:
    sums = QuotaSums({"cpu": 10})
    for one in (
        QuotaTerms("up", max={"cpu": 8}, weight={"cpu": 1}),
        QuotaTerms("team", "up", max={"cpu": 10}),
    ):
        sums.put(one)
    sums.add_request("team", {"cpu": 3})
    sums.add_used("team", {"cpu": 2}, reserved=True)
    before = picture(sums)
    sums.remove("up")
    assert sums.runtime("team") == {"cpu": 0}
    sums.put(QuotaTerms("up", max={"cpu": 8}, weight={"cpu": 1}))
    assert picture(sums) == before
    top = sums.get("up")
    assert top is not None
    assert top.reserved_used == {"cpu": 2}


# --- what is shared ---------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> tuple[QuotaSums, Amounts]:
    """A tree whose quotas all track all resources, that guarantees no use, with pods anywhere."""
    capacity = draw(whole)
    sums = QuotaSums(capacity)
    for at, name in enumerate(NAMES[: draw(st.integers(1, len(NAMES)))]):
        parent = draw(st.sampled_from((ROOT_QUOTA, *NAMES[:at])))
        sums.put(replace(draw(terms(whole)), name=name, parent=parent, guarantees=False, scales=True))
        sums.add_request(name, draw(whole))
    return sums, capacity


@given(trees())
def test_siblings_never_have_more_than_their_parent(tree: tuple[QuotaSums, Amounts]) -> None:
    sums, capacity = tree
    for parent in (ROOT_QUOTA, *(one.terms.name for one in sums)):
        account = sums.get(parent)
        assert account is not None
        above = capacity if parent == ROOT_QUOTA else sums.runtime(parent)
        for key in KEYS if account.children else ():
            assert sum(sums.runtime(name)[key] for name in account.children) <= above[key]


@given(trees())
def test_each_has_what_it_is_guaranteed_and_asks_for(tree: tuple[QuotaSums, Amounts]) -> None:
    sums, _ = tree
    for one in sums:
        name = one.terms.name
        runtime, least = sums.runtime(name), sums.scaled_min(name)
        for key in KEYS:
            assert runtime[key] >= min(one.limited.get(key, 0), least[key])
            assert runtime[key] <= max(one.limited.get(key, 0), least[key])


@given(trees(), st.sampled_from(NAMES), whole)
def test_what_is_lent_comes_back(tree: tuple[QuotaSums, Amounts], name: str, more: Amounts) -> None:
    sums, _ = tree
    if name not in sums:
        return
    before = picture(sums)
    sums.add_request(name, more)
    sums.add_used(name, more)
    account = sums.get(name)
    assert account is not None
    assert all(
        sums.runtime(name)[key] >= min(account.limited.get(key, 0), sums.scaled_min(name)[key])
        for key in KEYS
    )
    sums.add_request(name, more, -1)
    sums.add_used(name, more, -1)
    assert picture(sums) == before


def _runtimes(sums: QuotaSums) -> Mapping[str, Amounts]:
    return {one.terms.name: dict(sums.runtime(one.terms.name)) for one in sums}


@given(trees(), st.sampled_from(NAMES), st.integers(2, 6))
def test_what_is_known_without_a_split_is_so(tree: tuple[QuotaSums, Amounts], name: str, times: int) -> None:
    sums, capacity = tree
    for roomy in (capacity, {key: times * number for key, number in capacity.items()}):
        sums.capacity = roomy
        ample, certain = sums.ample, [one for one in NAMES if one in sums and sums.has_all(one)]
        assert not ample or certain == [one for one in NAMES if one in sums]
        for one in certain:
            account = sums.get(one)
            assert account is not None
            assert all(sums.runtime(one)[key] >= account.child_request.get(key, 0) for key in KEYS)


@given(trees(), st.sampled_from(NAMES), whole)
def test_who_may_use_more_stands_below_one_that_is_named(
    tree: tuple[QuotaSums, Amounts], name: str, less: Amounts
) -> None:
    sums, _ = tree
    if name not in sums:
        return
    sums.add_request(name, less)
    sums.eased()
    before = _runtimes(sums)
    sums.add_request(name, less, -1)
    parents = sums.eased()
    for other, runtime in _runtimes(sums).items():
        if any(number > before[other][key] for key, number in runtime.items()):
            assert any(one in parents for one in sums.above(other)[1:]), other


shares = st.lists(
    st.builds(
        QuotaShare, st.sampled_from(NAMES), st.integers(0, 2**44), st.integers(0, 2**40), st.integers(0, 2**44), st.booleans()
    ),
    unique_by=lambda one: one.name,
)  # fmt: skip


@given(st.integers(0, 2**48), shares)
def test_a_split_is_fair_to_the_unit(total: int, given: list[QuotaShare]) -> None:
    found = split(total, given)
    first = sum(one.first for one in given)
    assert sum(found.runtime.values()) <= max(total, first)
    for one in given:
        assert one.first <= found.runtime[one.name] <= one.most
    left = total - sum(found.runtime.values())
    assert left <= 0 or all(found.runtime[one.name] == one.most for one in given), (
        "nothing is kept from the hungry"
    )
    for turn in found.rounds:
        assert sum(turn.handed.values()) == turn.left
        weights = {share.name: share.weight for share in given}
        for name, number in turn.handed.items():
            assert abs(number - Fraction(weights[name] * turn.left, turn.weight)) < 1


def test_a_chain_of_quotas_may_be_deeper_than_calls_may_be() -> None:
    sums, deep = QuotaSums({"cpu": 100}), 1_500
    for at in range(deep):
        above = f"q{at - 1}" if at else ROOT_QUOTA
        sums.put(QuotaTerms(f"q{at}", above, {"cpu": 0}, {"cpu": 10}, {}))
    sums.add_request(f"q{deep - 1}", {"cpu": 3})
    ends = [sums.get(f"q{at}") for at in (0, deep - 1)]
    assert [one and one.left["cpu"] for one in ends] == [7, 7]
