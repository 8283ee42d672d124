"""Accounts in trials: whatever is reserved, permitted, bound, confirmed and given up, afterwards all is as it was before."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cluster.pods import PodView
from koordpolicy.scheduler.ledger import Claim, Stage
from koordpolicy.scheduler.plugin_states import PluginStates
from koordpolicy.scheduler.plugins.base import Host, Plugin
from tests.unit.scheduler.test_plugins_with_state import Licensed, graph_of
from tests.unit.scheduler.test_volumes import claim, hear, storage_class, using, volume
from tests.unit.scheduler.world import START, pod

NODES: Final = ("n0", "n1")
KEYS: Final = tuple(("default", f"p{at}") for at in range(4))


class Stop(Exception):
    """Ends a trial before its end."""


class Tokens:
    """Those that are out, one for each pod."""

    def __init__(self, _host: Host) -> None:
        self.out: set[int] = set()
        self.made = 0

    def take(self, *_about: object) -> int:
        self.made += 1
        self.out.add(self.made)
        return self.made

    def again(self, token: int) -> None:
        assert token not in self.out
        self.out.add(token)

    def give_back(self, token: int) -> None:
        assert token in self.out
        self.out.remove(token)


PLUGINS: Final[Mapping[str, Plugin]] = {
    "redone": Plugin(
        state=Tokens, reserve=Tokens.take, undo=Tokens.give_back, redo=Tokens.again, adopt=Tokens.take
    ),
    "taken until the end": Plugin(
        state=Tokens, reserve=Tokens.take, undo=Tokens.give_back, adopt=Tokens.take
    ),
    "only on the way": Plugin(state=Tokens, reserve=Tokens.take, undo=Tokens.give_back, redo=Tokens.again),
}


class Books:
    """A scheduler's ledger and cache, and plugins that enter claims there, as who decides on many pods at once has them.

    Each trial is seen to leave no trace.
    """

    def __init__(self, plugin: str) -> None:
        world = Licensed(graph_of(), PLUGINS[plugin])
        scheduler = self.scheduler = world.scheduler
        self.ledger, self.cache = scheduler.ledger, scheduler.cache
        for one in (storage_class("local"), *(claim(f"c-{at}") for at in range(3))):
            hear(world, one)
        for at in range(3):
            hear(world, volume(f"v{at}"))
        self.plugins = PluginStates(
            scheduler.ledger, lambda: scheduler.framework, lambda: START, lambda *_: None, lambda *_: None,
            lambda _key: False, lambda *_: None,
        )  # fmt: skip
        self.plugins.begin(scheduler.framework)
        self._states = world.states

    @property
    def out(self) -> list[int]:
        return sorted(token for state in self._states for token in state.out)

    def view(self, at: int) -> PodView:
        """The last two pods share a claim."""
        return self.scheduler.framework.cycle(pod(KEYS[at][1], using(f"c-{min(at, 2)}"))).view

    def picture(self) -> Any:
        """All that can be seen of it, orders included."""
        ledger, cache = self.ledger, self.cache
        return (
            [(id(one), self._shown(KEYS.index(one.view.pod.key))) for one in ledger],
            [id(one) for one in ledger.waiting.values()],
            None if cache.state.undo.depth else ledger.next_time(),
            [(name, list(pods.items())) for name, pods in ledger.promises.items()],
            [ledger.stage(key) for key in KEYS],
            self.out,
            [id(one) for one in cache.state.volumes.planned],
            list(cache.pods()),
            [dict(cache.table.row(at)) for at in range(len(cache))],
        )

    def _shown(self, at: int) -> Any:
        one = self.ledger.get(KEYS[at])
        assert one is not None
        claims = [(id(taken), taken.owner, taken.data) for taken in one.claims]
        return id(one.view), one.node, one.stage, claims, one.decision, one.until, list(one.permits.items())

    def act(self, change: tuple[Any, ...]) -> None:
        match change:
            case ("trial", changes, raises):
                before = self.picture()
                with suppress(Stop), self.cache.trial():
                    for one in changes:
                        self.act(one)
                    if raises:
                        raise Stop
                assert self.picture() == before
            case ("promise", at, where):
                self.ledger.promise(self.view(at), NODES[where])
            case ("reserve" | "adopt", at, where):
                self._take(*change)
            case (what, at, number):
                self._go_on(what, at, number)

    def _take(self, what: str, at: int, where: int) -> None:
        view, node = self.view(at), NODES[where]
        self.ledger.give_up(KEYS[at])
        account = self.ledger.open(view, node, Stage.RESERVED if what == "reserve" else Stage.CONFIRMED)
        if what == "reserve":
            refused = self.plugins.reserve(
                cycle := self.scheduler.framework.cycle(view),
                self.cache.table,
                account,
                self.plugins.concerned(cycle),
            )
            assert refused is None
            self.ledger.claim(account, Claim("", at, self._displace, logged=True))
        else:
            self.plugins.adopt(account)
        self.cache.place(view, node, START)

    def _displace(self, at: int) -> None:
        self.cache.displace(KEYS[at])

    def _go_on(self, what: str, at: int, number: int) -> None:
        account = self.ledger.get(KEYS[at])
        if account is None:
            return
        match what:
            case "permit":
                self.ledger.permit(account, "Licences", ("soon", None)[number])
            case "wait":
                self.ledger.wait(account, START + 10 + number)
            case "bind":
                self.ledger.bind(account, (None, START + 20)[number])
            case "confirm":
                self.ledger.confirm(KEYS[at], self.view(at))
            case "renew":
                self.ledger.renew(account, self.view(at))
            case "decide":
                self.ledger.decided(account, self.scheduler.framework.decide(account.view))
            case "give up":
                self.ledger.give_up(KEYS[at])


_CHANGE: Final = st.tuples(
    st.sampled_from(
        ("reserve", "adopt", "promise", "permit", "wait", "bind", "confirm", "renew", "decide", "give up")
    ),
    st.integers(0, len(KEYS) - 1),
    st.integers(0, 1),
)
_CHANGES: Final = st.lists(
    st.recursive(
        _CHANGE,
        lambda inner: st.tuples(st.just("trial"), st.lists(inner, max_size=6), st.booleans()),
        max_leaves=10,
    ),
    max_size=12,
)


@pytest.mark.parametrize("plugin", PLUGINS)
@settings(max_examples=80)
@given(before=st.lists(_CHANGE, max_size=12), changes=_CHANGES, raises=st.booleans())
def test_after_a_trial_all_accounts_are_as_before(
    plugin: str, before: list[Any], changes: list[Any], raises: bool
) -> None:
    books = Books(plugin)
    for change in before:
        books.act(change)
    books.act(("trial", changes, raises))
    for account in list(books.ledger):
        books.ledger.give_up(account.view.pod.key)
    if PLUGINS[plugin].adopt is not None:
        assert books.out == [], "each token is given back once"


@settings(max_examples=80)
@given(before=st.lists(_CHANGE, max_size=12), changes=st.lists(_CHANGE, max_size=8))
def test_in_a_trial_what_was_given_back_is_free(before: list[Any], changes: list[Any]) -> None:
    tried, done = Books("redone"), Books("redone")
    for change in [*before, *changes]:
        done.act(change)
    for change in before:
        tried.act(change)
    with tried.cache.trial():
        for change in changes:
            tried.act(change)
        assert tried.out == done.out
        assert [one.stage for one in tried.ledger] == [one.stage for one in done.ledger]


def test_without_redo_what_was_given_back_counts_as_taken_until_the_end() -> None:
    books = Books("taken until the end")
    books.act(("reserve", 0, 0))
    with books.cache.trial():
        books.act(("reserve", 1, 0))
        books.ledger.give_up(KEYS[0])
        books.ledger.give_up(KEYS[1])
        assert books.out == [1, 2]
    assert books.out == [1]
    books.ledger.give_up(KEYS[0])
    assert books.out == []


def test_no_time_passes_in_a_trial() -> None:
    books = Books("redone")
    with pytest.raises(AssertionError, match="no time passes"), books.cache.trial():
        next(books.ledger.due(START))
