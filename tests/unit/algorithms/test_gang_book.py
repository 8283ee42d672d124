"""The book of gangs by model check: all that can happen in small worlds, and random walks through larger ones.

A world is a number of places, pods that each take one, and a book by the pack's rules. What can happen: a pod comes or goes, one
that may be tried is tried, the round goes on, one that waits runs out of time, one that may go is bound, or does not get there. In
every state: nobody may go whose gangs have not enough, and no more places are taken than there are. From every state: once nothing
fails any more, all gangs that fit are bound, and nobody else holds a place.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, NamedTuple

import pytest

from koordpolicy.algorithms.gang import Gang, GangGroup, GangParameters, Held, Permitted
from koordpolicy.algorithms.gang_book import GangBook
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.plugins.gang.policy import KIND, GangDecisions, GangPolicy
from tests.vectors.policies import document, graph

_MOST: Final = 60_000
"""States of one world at most."""


@dataclass(frozen=True)
class Rules:
    """What the pack says, in Python: a model check asks it a million times. `test_the_rules_are_the_packs` compares."""

    joins: bool = False
    one: bool = False

    def complete(self, gang: Gang, _group: GangGroup) -> bool:
        return gang.parameters is not None and len(gang.pods) >= gang.parameters.minimum

    def satisfied(self, gang: Gang, group: GangGroup) -> bool:
        said = gang.parameters
        assert said is not None
        if said.match_policy == "waiting-and-running":
            return len(gang.waiting) + len(gang.bound) >= said.minimum
        free = group.once_satisfied and (self.joins or said.match_policy == "once-satisfied")
        return free or len(gang.waiting) >= said.minimum

    def free(self, gang: Gang, group: GangGroup) -> bool:
        said = gang.parameters
        assert said is not None
        joins = said.match_policy == "once-satisfied" or (self.joins and said.match_policy == "only-waiting")
        return group.once_satisfied and joins

    def rejects_together(self, gang: Gang, _group: GangGroup) -> bool:
        return gang.parameters is not None and gang.parameters.mode == "Strict"

    def one_enters(self, _gang: Gang, _group: GangGroup) -> bool:
        return self.one


@pytest.mark.parametrize("joins", [False, True])
def test_the_rules_are_the_packs(joins: bool) -> None:
    overlay = document(KIND, "own", {"parameters": {"joinsRunning": joins}})
    packs = GangDecisions(GangPolicy(graph(overlay)), lambda: 0, lambda _name: {}, lambda _gang: 0)
    policies, modes = ("once-satisfied", "only-waiting", "waiting-and-running"), ("Strict", "NonStrict")
    for match, mode, once in product(policies, modes, (False, True)):
        for minimum, pending, waiting, bound in product(range(3), range(2), range(3), range(2)):
            gang = Gang("a/b", GangParameters(minimum, ("a/b",), mode=mode, match_policy=match))
            names = [("a", str(at)) for at in range(pending + waiting + bound)]
            gang.pods = dict.fromkeys(names)
            gang.waiting, gang.bound = dict.fromkeys(names[:waiting]), dict.fromkeys(names[waiting:][:bound])
            group = GangGroup(("a/b",), once_satisfied=once)
            for ask in ("complete", "satisfied", "free", "rejects_together"):
                mine, theirs = getattr(Rules(joins), ask), getattr(packs, ask)
                assert mine(gang, group) == theirs(gang, group), (ask, gang)


class Step(NamedTuple):
    """Something that can happen, to a pod if one is named."""

    what: str
    pod: PodKey = ("", "")


def copied(book: GangBook) -> GangBook:
    """A book with pages of its own: many times faster than `deepcopy`, and a model check does little else."""
    found = GangBook(book.rules)
    for name, one in book.gangs.items():
        gang = Gang(
            name,
            one.parameters,
            {**one.pods},
            {**one.pending},
            {**one.waiting},
            {*one.allowed},
            {**one.bound},
        )
        found._gangs[name] = gang
        found._gang_of.update(dict.fromkeys(gang.pods, gang))
    found._groups = {key: replace(group) for key, group in book._groups.items()}
    now = book.round
    found.round = None if now is None else replace(now, attempted={*now.attempted})
    return found


class Places:
    """So many places, and a book."""

    def __init__(self, rules: Rules, places: int) -> None:
        self.book = GangBook(rules)
        self.places = places
        self.lost = 0
        """Pods that were taken away since others were let go."""

    def again(self) -> "Places":
        """The same, to be changed by itself."""
        found = Places.__new__(Places)
        found.book, found.places, found.lost = copied(self.book), self.places, self.lost
        return found

    @property
    def gangs(self) -> list[Gang]:
        return list(self.book.gangs.values())

    def in_round(self) -> bool:
        return self.book.round is not None

    @property
    def taken(self) -> int:
        return sum(len(one.waiting) + len(one.bound) for one in self.gangs)

    def key(self) -> object:
        """What tells states apart: in the end only which pods are where, and the round."""
        book, of = self.book, ("pending", "waiting", "allowed", "bound")
        gangs = [(one.id, *(tuple(sorted(getattr(one, name))) for name in of)) for one in self.gangs]
        groups = sorted(
            (group.gangs, group.once_satisfied, group.representative)
            for group in map(book.group_of, self.gangs)
        )
        now = book.round
        return str(
            (gangs, groups, None if now is None else (now.group, sorted(now.attempted), bool(now.failed)))
        )

    def steps(self, *, trouble: bool) -> Iterator[Step]:
        """All that can happen now, what ends soonest first; `trouble` is what need not."""
        for gang in self.gangs:
            yield from (Step("bind", pod) for pod in gang.allowed)
        if self.in_round():
            # The scheduler goes on with a round before anything else of its own.
            yield from (Step("turn", pod) for pod in self.book.left() or [("", "")])
        else:
            for gang in self.gangs:
                yield from (Step("try", pod) for pod in gang.pending)
        for gang in self.gangs if trouble else ():
            yield from (Step("fail", pod) for pod in gang.allowed)
            yield from (Step("expire", pod) for pod in gang.waiting if pod not in gang.allowed)
            yield from (Step("delete", pod) for pod in gang.pods)

    def take(self, step: Step) -> None:
        book, pod = self.book, step.pod
        match step.what:
            case "turn":
                if pod == ("", ""):
                    book.next()  # nobody is left: the round is over
                else:
                    book.take(pod)
                    self.attempt(pod)
            case "try":
                if book.may_enter(pod) is None:
                    self.attempt(pod)
            case "bind":
                book.bound(pod)
            case "fail" | "expire":
                book.unreserved(pod)
            case "delete":
                book.unreserved(pod)
                book.remove_pod(pod)

    def attempt(self, pod: PodKey) -> None:
        """A cycle of the scheduler."""
        if self.book.begin(pod) is not None or self.taken >= self.places:
            self.book.failed(pod, "no place")
        else:
            self.book.permit(pod)

    # --- what must hold -------------------------------------------------------------------------

    def check(self) -> None:
        """Holds at every moment."""
        assert self.taken <= self.places
        for gang in self.gangs:
            group = self.book.group_of(gang)
            sets = [*gang.pending, *gang.waiting, *gang.bound]
            assert sorted(sets) == sorted(gang.pods), "each pod is in one place"
            assert gang.allowed <= set(gang.waiting)
            assert self.book.lacks(gang) == bool(self.book.lacking(gang))
            if gang.allowed and gang.parameters is not None and not group.once_satisfied:
                lost = gang.parameters.minimum - len(gang.waiting) - len(gang.bound)
                assert lost <= self.lost, "nobody may go alone"

    def settle(self) -> None:
        """Nothing fails any more, and the scheduler goes on by itself as long as anything comes of it."""
        before = None
        for _ in range(200):
            while self.in_round() or any(one.allowed for one in self.gangs):
                self.take(next(self.steps(trouble=False)))
            if self.key() == before:
                return
            before = self.key()
            for gang in self.gangs:
                # What ran out of time is tried again, as the queue does.
                for pod in [one for one in gang.waiting if one not in gang.allowed]:
                    self.book.unreserved(pod)
                for pod in list(gang.pending):
                    if not self.in_round() and pod in gang.pending:
                        self.take(Step("try", pod))
                    while self.in_round():
                        self.take(next(self.steps(trouble=False)))
        raise AssertionError(f"it does not come to rest: {self.key()}")

    def check_settled(self) -> None:
        """Holds once it has come to rest: nobody holds a place in vain, and whoever fits has one."""
        for gang in self.gangs:
            assert not gang.waiting, f"{gang.id} holds places: {self.key()}"
            if self.book.lacking(gang):
                continue
            together = list(self.book.together(gang))
            wanted = sum(len(one.pending) for one in together)
            assert not wanted or wanted > self.places - self.taken, (
                f"{gang.id} fits and is not bound: {self.key()}"
            )


def world(
    rules: Rules,
    places: int,
    gangs: dict[str, tuple[int, int]],
    group: tuple[str, ...] = (),
    **more: str,
) -> Places:
    """Gangs by name with their minimum and their pods, each alone or all together."""
    found = Places(rules, places)
    for name, (minimum, pods) in gangs.items():
        found.book.set_gang(name, GangParameters(minimum, group or (name,), wait=1, **more))  # type: ignore[arg-type]
        for at in range(pods):
            found.book.set_pod((name, str(at)), name)
    return found


SMALL: Final = [
    pytest.param({"a": (2, 2), "b": (2, 2)}, (), {}, id="two gangs"),
    pytest.param({"a": (2, 3), "b": (1, 1)}, (), {}, id="a pod more than needed"),
    pytest.param({"a": (1, 2), "b": (2, 2)}, ("a", "b"), {}, id="two gangs together"),
    pytest.param({"a": (2, 2), "b": (2, 2)}, (), {"mode": "NonStrict"}, id="two gangs that are not strict"),
    pytest.param({"a": (2, 3)}, (), {"match_policy": "waiting-and-running"}, id="those that run count"),
    pytest.param({"a": (2, 3)}, (), {"match_policy": "only-waiting"}, id="only those that wait count"),
]


@pytest.mark.parametrize("one_enters", [False, True], ids=["each", "one for all"])
@pytest.mark.parametrize(("gangs", "group", "more"), SMALL)
def test_all_that_can_happen_in_small_worlds(
    gangs: dict[str, tuple[int, int]], group: tuple[str, ...], more: dict[str, str], one_enters: bool
) -> None:
    rules = Rules(joins=True, one=one_enters)
    for places in (2, 3):
        first = world(rules, places, gangs, group, **more)
        seen, open_ = {first.key()}, [first]
        while open_:
            here = open_.pop()
            here.check()
            settled = here.again()
            settled.settle()
            settled.check_settled()
            for step in here.steps(trouble=True):
                there = here.again()
                there.lost += step.what in ("fail", "delete")
                there.take(step)
                if there.key() not in seen:
                    seen.add(there.key())
                    assert len(seen) < _MOST
                    open_.append(there)


@pytest.mark.parametrize("seed", range(4))
def test_random_walks_through_larger_worlds(seed: int) -> None:
    chance = random.Random(seed)
    here = Places(Rules(joins=True, one=bool(seed % 2)), 20)
    for at in range(6):
        name = f"g{at}"
        group = (name,) if at < 4 else ("g4", "g5")
        mode, match = (
            chance.choice(("Strict", "NonStrict")),
            chance.choice(("once-satisfied", "waiting-and-running")),
        )
        here.book.set_gang(
            name, GangParameters(chance.randint(1, 8), group, mode=mode, match_policy=match, wait=1)
        )
    for at in range(2000):
        if chance.random() < 0.2:
            name = f"g{chance.randrange(6)}"
            here.book.set_pod((name, str(at)), name)
        else:
            steps = list(here.steps(trouble=chance.random() < 0.2))
            if steps:
                step = chance.choice(steps)
                here.lost += step.what in ("fail", "delete")
                here.take(step)
        here.check()
        if at % 200 == 0:
            settled = here.again()
            settled.settle()
            settled.check_settled()


def test_where_only_those_that_wait_count_a_pod_more_waits_for_ever_unless_policy_lets_it_join() -> None:
    for joins in (False, True):
        here = world(Rules(joins), 3, {"a": (2, 2)}, match_policy="only-waiting")
        here.settle()
        here.book.set_pod(("a", "more"), "a")
        here.settle()
        assert (("a", "more") in here.book.gangs["a"].bound) is joins


def test_a_gang_that_is_not_known_waits_no_time() -> None:
    book = GangBook(Rules())
    book.set_pod(("a", "0"), "a")
    assert book.permit(("a", "0")) == Held(0)


class Counted(Rules):
    """The same, and how often it is asked whether enough pods are there."""

    asked: list[str]

    def complete(self, gang: Gang, group: GangGroup) -> bool:
        self.asked.append(gang.id)
        return super().complete(gang, group)


def together(count: int) -> tuple[GangBook, list[str]]:
    """So many gangs of one pod each, placed together, each with a list of its own of all names; and what is asked."""
    rules = Counted()
    object.__setattr__(rules, "asked", [])
    book = GangBook(rules)
    for at in range(count):
        book.set_gang(f"d/{at}", GangParameters(1, tuple(f"d/{one}" for one in range(count)), wait=1))
    return book, rules.asked


def test_gangs_that_wait_for_each_other_cost_a_step_or_two_a_pod() -> None:
    book, asked = together(100)
    for at in range(100):
        book.set_pod(("d", str(at)), f"d/{at}")
        assert (book.may_enter(("d", str(at))) is None) == (at == 99)
    assert len(asked) < 400, "not one for each gang and pod"


def test_gangs_that_are_placed_together_hold_one_list_of_names() -> None:
    book, _ = together(10)
    assert len({id(one.parameters.group) for one in book.gangs.values() if one.parameters is not None}) == 1
    assert len({id(book.group_of(one)) for one in book.gangs.values()}) == 1


def test_a_gang_beside_its_own_list_keeps_to_the_record_of_the_others() -> None:
    book = GangBook(Rules())
    first, other = (book.set_gang(name, GangParameters(1, ("b", "c"))) for name in "ab")
    assert book.group_of(first) is book.group_of(other)
    book.remove_gang("b")
    again = book.set_gang("b", GangParameters(1, ("b", "c")))
    assert book.group_of(first) is book.group_of(again)


def test_nothing_is_held_of_gangs_that_are_gone() -> None:
    book, _ = together(3)
    gangs = list(book.gangs.values())
    for gang in gangs:
        book.remove_gang(gang.id)
        book.group_of(gang)
    assert not book._groups


class Crowd:
    """A gang `own/g` of two pods, one of which waits on a node, and `other/x`, a stranger's, which names the gangs of `named`."""

    def __init__(
        self,
        named: tuple[str, ...],
        stranger: str = "other/x",
        theirs: tuple[str, ...] = (),
        *,
        takes_along: bool = False,
    ) -> None:
        self.book = GangBook(Rules())
        self.book.set_gang("own/g", GangParameters(2, theirs or ("own/g",), wait=1))
        self.book.set_gang(stranger, GangParameters(1, named, wait=1, takes_along=takes_along))
        for at in range(2):
            self.book.set_pod(("own", str(at)), "own/g")
        self.stranger = stranger.partition("/")[0], "x"
        self.book.set_pod(self.stranger, stranger)

    def one_waits(self) -> None:
        assert self.book.begin(("own", "0")) is None
        assert not isinstance(self.book.permit(("own", "0")), Permitted)
        self.book.close()


def test_nobody_gives_a_node_back_as_a_stranger_names_his_gang() -> None:
    crowd = Crowd(("other/x", "own/g"))
    crowd.one_waits()
    assert crowd.book.begin(crowd.stranger) is None
    assert crowd.book.left() == ()
    assert crowd.book.failed(crowd.stranger, "no node") == ()
    assert crowd.book.next().rejected == ()
    assert ("own", "0") in crowd.book.gangs["own/g"].waiting


def test_whoever_names_a_gang_waits_for_it_and_lets_none_of_its_pods_go() -> None:
    crowd = Crowd(("other/x", "own/g"), theirs=("own/g", "own/h"))
    crowd.book.set_gang("own/h", GangParameters(1, ("own/g", "own/h"), wait=1))
    crowd.book.set_pod(("own", "h"), "own/h")
    crowd.one_waits()
    assert crowd.book.begin(("own", "1")) is None
    crowd.book.permit(("own", "1"))
    crowd.book.close()
    assert crowd.book.begin(crowd.stranger) is None
    found = crowd.book.permit(crowd.stranger)
    assert isinstance(found, Permitted)
    assert found.pods == (crowd.stranger,), "own/h has no node yet, and own/g goes with it"
    assert not crowd.book.gangs["own/g"].allowed


def test_a_stranger_beside_his_own_list_does_not_share_the_record_of_those_he_names() -> None:
    crowd = Crowd(("own/g",))
    crowd.book.bound(crowd.stranger)
    assert not crowd.book.group_of(crowd.book.gangs["own/g"]).once_satisfied
    assert crowd.book.may_enter(("own", "0")) is None


@pytest.mark.parametrize(("stranger", "theirs"), [("own/x", ("own/g",)), ("other/x", ("other/x", "own/g"))])
def test_gangs_of_one_namespace_and_those_that_name_each_other_go_together(
    stranger: str, theirs: tuple[str, ...]
) -> None:
    crowd = Crowd(tuple(sorted((stranger, "own/g"))), stranger, theirs)
    crowd.book.permit(("own", "0"))
    assert crowd.book.begin(crowd.stranger) is None
    assert crowd.book.failed(crowd.stranger, "no node") == (("own", "0"),)


def test_gangs_of_other_namespaces_go_with_one_that_names_them_where_policy_says_so() -> None:
    crowd = Crowd(("other/x", "own/g"), takes_along=True)
    crowd.one_waits()
    assert crowd.book.begin(crowd.stranger) is None
    assert crowd.book.left() == (("own", "1"),)
    assert crowd.book.failed(crowd.stranger, "no node") == (("own", "0"),)


def test_so_do_those_of_which_nothing_is_said_any_more() -> None:
    crowd = Crowd(("other/x", "own/g"), takes_along=True)
    crowd.one_waits()
    crowd.book.permit(crowd.stranger)
    crowd.book.set_gang("own/g", None)
    assert crowd.book.unreserved(crowd.stranger) == (("own", "0"),)
