"""The ledger: whatever happens, what is held is what it lists, and each claim is given back once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cluster.events import Event
from koordpolicy.cluster.nodes import NodeView
from koordpolicy.cluster.pods import PodView
from koordpolicy.cluster.volume_plan import VolumePlan
from koordpolicy.scheduler.ledger import Stage
from koordpolicy.scheduler.plugins.base import Host, Plugin, Refusal, Wait
from koordpolicy.scheduler.plugins.parameters import Parameters
from tests.unit.scheduler.test_plugins_with_state import Licensed, graph_of
from tests.unit.scheduler.test_volumes import claim, hear, storage_class, using, volume
from tests.unit.scheduler.world import node, pod

CONFIRMED_WITHIN: Final = ("30s", "90s")
PODS: Final = ("a", "b", "c", "d")
NODES: Final = ("n0", "n1")


class Tokens:
    """Takes a token for each pod, and does as it is told: `mood` by part."""

    mood: ClassVar[Counter[str]] = Counter()

    def __init__(self, host: Host) -> None:
        self.host = host
        self.out: set[int] = set()
        self.made = 0
        self.wrong = 0

    def take(self, _pod: PodView, _nodes: NodeView, _parameters: Parameters) -> int | Refusal:
        if self.mood["reserve fails"]:
            raise ZeroDivisionError
        return Refusal("no") if self.mood["reserve refuses"] else self._one()

    def gate(self, _pod: PodView, _parameters: Parameters) -> Refusal | None:
        return Refusal("shut") if self.mood["gate shuts"] else None

    def adopt(self, _pod: PodView, _node: str) -> int:
        if self.mood["adopt fails"]:
            raise ZeroDivisionError
        return self._one()

    def _one(self) -> int:
        self.made += 1
        self.out.add(self.made)
        return self.made

    def give_back(self, token: int) -> None:
        self.wrong += token not in self.out
        self.out.discard(token)

    def permit(self, _pod: PodView, _node: str, _parameters: Parameters) -> Refusal | Wait | None:
        if self.mood["permit fails"]:
            raise ZeroDivisionError
        if self.mood["permit refuses"]:
            return Refusal("no")
        return Wait(self.host.now() + 20 * 10**9, "not yet") if self.mood["permit waits"] else None


PLUGIN: Final = Plugin(
    state=Tokens,
    gate=Tokens.gate,
    reserve=Tokens.take,
    undo=Tokens.give_back,
    adopt=Tokens.adopt,
    permit=Tokens.permit,
    helped_by=frozenset({Event.POD_GONE}),
)


class Story:
    """A world in which things happen, and what is known of its pods beside it."""

    def __init__(self) -> None:
        Tokens.mood = Counter()
        self.world = Licensed(graph_of(CONFIRMED_WITHIN[0]), PLUGIN)
        self.scheduler = self.world.scheduler
        self.there: dict[str, str] = {}
        """The pods that there are, with their nodes; empty for one that is not bound."""
        self.uids: Counter[str] = Counter()
        self.plans: list[VolumePlan] = []
        """The plans of pods that were confirmed: the cluster has still to show these."""
        classes = (storage_class("local"), storage_class("made", "disk.example.com"))
        for one in (*classes, claim("shared", "made"), *(claim(f"c-{name}") for name in PODS)):
            hear(self.world, one)
        for at in range(3):
            hear(self.world, volume(f"v{at}"))

    def pod(self, name: str, where: str = "") -> Any:
        more = {"node": where, "phase": "Running"} if where else {}
        return replace(
            pod(name, {**using(f"c-{name}", *self.shared(name)), **more}), uid=f"{name}-{self.uids[name]}"
        )

    def shared(self, name: str) -> tuple[str, ...]:
        """The claim that two of the pods have both."""
        return ("shared",) if name in PODS[:2] else ()

    def come(self, name: str) -> None:
        self.there.setdefault(name, "")
        self.scheduler.set_pod(self.pod(name, self.there[name]))

    def decide(self, _name: str) -> None:
        """All that are due."""
        for _ in range(3 * len(PODS)):
            if self.scheduler.schedule_one() is None:
                break

    def bound(self, name: str, at: int = 0) -> None:
        """A pod is bound, to the node that was chosen or to another one."""
        account = self.scheduler.ledger.assumed(("default", name))
        if account is None or self.there[name]:
            return
        where = account.node if at == 0 else NODES[at - 1]
        if where == account.node:
            self.plans += (one.data for one in account.claims if isinstance(one.data, VolumePlan))
        self.there[name] = where
        self.scheduler.set_pod(self.pod(name, where))

    def fails(self, name: str) -> None:
        if self.there.get(name) == "":
            self.scheduler.forget(self.pod(name))

    def goes(self, name: str) -> None:
        self.there.pop(name, None)
        self.scheduler.remove_pod(("default", name))

    def other(self, name: str) -> None:
        """Another pod of that name; the end of the first one was not heard of."""
        if name in self.there:
            self.uids[name] += 1
            self.there[name] = ""
            self.scheduler.set_pod(self.pod(name))

    def node(self, name: str) -> None:
        where = NODES[PODS.index(name) % 2]
        if where in self.scheduler.cache:
            self.scheduler.remove_node(where)
        else:
            self.scheduler.set_node(node(where, {}))

    def revision(self, name: str) -> None:
        self.scheduler.replace_graph(graph_of(CONFIRMED_WITHIN[PODS.index(name) % 2]))

    def time(self, name: str) -> None:
        self.world.pass_time((1, 15, 40, 400)[PODS.index(name)])

    def asks(self, _name: str) -> None:
        for state in self.world.states:
            state.host.reconsider()

    def check(self) -> None:
        ledger, cache = self.scheduler.ledger, self.scheduler.cache
        claims = [one for account in ledger for one in account.claims]
        held = [one.data for one in claims if one.owner == "Licences" and isinstance(one.data, int)]
        tokens = [state for state in self.world.states if isinstance(state, Tokens)]
        assert sorted(held) == sorted(token for state in tokens for token in state.out)
        assert not any(state.wrong for state in tokens), "given back twice"
        listed = [one.data for one in claims if one.owner == "VolumeBinding"]
        known = {id(one) for one in [*listed, *self.plans]}
        assert {id(one) for one in cache.state.volumes.planned} == known
        for name in PODS:
            key = ("default", name)
            waits, account = key in self.scheduler.pending, ledger.assumed(key)
            is_bound = self.there.get(name, "") != ""
            assert waits + (account is not None) + is_bound == (name in self.there), name
            assert (cache.node_of(key) is not None) == (account is not None or is_bound), name
            if account is not None:
                assert cache.node_of(key) == account.node
        assert set(ledger.waiting) == {
            account.view.pod.key for account in ledger if account.stage == Stage.WAITING
        }


ACTS: Final[dict[str, Callable[[Story, str], None]]] = {
    "comes": Story.come,
    "is decided": Story.decide,
    "is decided again": Story.decide,
    "is decided once more": Story.decide,
    "is bound": Story.bound,
    "is bound on n0": lambda story, name: story.bound(name, 1),
    "is bound on n1": lambda story, name: story.bound(name, 2),
    "fails": Story.fails,
    "goes": Story.goes,
    "is another": Story.other,
    "node": Story.node,
    "revision": Story.revision,
    "time": Story.time,
    "asks": Story.asks,
}
MOODS: Final = (
    "",
    "reserve fails",
    "reserve refuses",
    "adopt fails",
    "gate shuts",
    "permit fails",
    "permit refuses",
    "permit waits",
)


@settings(max_examples=100)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(sorted(ACTS)), st.sampled_from(PODS)),
            st.tuples(st.just("mood"), st.sampled_from(MOODS)),
        ),
        min_size=30,
        max_size=40,
    )
)
def test_what_is_held_is_what_the_ledger_lists(acts: list[tuple[str, str]]) -> None:
    story = Story()
    for name in PODS:
        story.come(name)
    for act, about in acts:
        if act == "mood":
            Tokens.mood = Counter({about: 1})
        else:
            ACTS[act](story, about)
        story.check()
    Tokens.mood = Counter()
    for name in PODS:
        story.goes(name)
    story.check()
    assert len(story.scheduler.ledger) == 0
