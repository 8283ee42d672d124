"""Plugins that reserve, permit and give back: shown with the smallest one, which is no part of the package."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cluster.pods import PodView
from koordpolicy.graph import Compiler, Layer, RuleGraph
from koordpolicy.language.kinds.plugins import PLUGINS as NAMES
from koordpolicy.language.kinds.plugins import PluginName
from koordpolicy.scheduler.ledger import Stage
from koordpolicy.scheduler.plugins import PLUGINS, ParameterError, Plugin
from koordpolicy.scheduler.plugins.base import Host, Refusal, Wait
from koordpolicy.scheduler.plugins.parameters import Parameters
from koordpolicy.scheduler.role import Role
from tests.unit.scheduler import licences
from tests.unit.scheduler.licences import LICENCES, Licences
from tests.unit.scheduler.world import World, pod, policies
from tests.vectors.policies import PACK

NAME = PluginName(
    "Licences", "Licences of a namespace.", filters=True, parameters={"perNamespace": "How many."}
)
POLICY = """
apiVersion: koordpolicy.io/v1alpha1
kind: SchedulingProfile
metadata: {name: own}
spec:
  schedulerName: koord-scheduler
  queue: {confirmWithin: %s}
  filters:
    - {name: Licences, plugin: Licences, parameters: {perNamespace: 2}}
"""


_COMPILER = Compiler({PACK.name: PACK}.get, plugins={**NAMES, "Licences": NAME})


@cache
def graph_of(confirm: str = "0s", licences: int = 2) -> RuleGraph:
    policy = (POLICY % confirm).replace("perNamespace: 2", f"perNamespace: {licences}")
    compilation = _COMPILER.compile(Layer("overlay", {"overlay/own.yaml": policy}))
    assert compilation.graph is not None, [one.message for one in compilation.found]
    return compilation.graph


class Licensed(World):
    """A world with the plugin, and its state; `plugin` is another one in its place."""

    def __init__(self, graph: RuleGraph | None = None, plugin: Plugin = LICENCES) -> None:
        self.states: list[Any] = []
        self.make = plugin.state
        plugin = replace(plugin, state=self.keep)
        super().__init__(graph or graph_of(), role=Role(plugins={**PLUGINS, "Licences": plugin}))
        self.build({"nodes": {"n0": {}, "n1": {}}})

    def keep(self, host: Host) -> Any:
        assert self.make is not None
        self.states.append(self.make(host))
        return self.states[-1]

    @property
    def licences(self) -> Licences:
        (state,) = self.states
        assert isinstance(state, Licences)
        return state

    @property
    def taken(self) -> int:
        return self.licences.taken["default"]

    def wait(self, name: str) -> None:
        """A pod comes, and waits for its permit."""
        self.submit(name)
        assert self.scheduler.schedule_one() is None
        assert self.scheduler.ledger.stage(("default", name)) == Stage.WAITING
        assert ("default", name) not in self.scheduler.pending


def test_it_is_small() -> None:
    assert len(Path(licences.__file__).read_text("utf-8").splitlines()) <= 42


def test_reserve_refuses_and_the_pod_comes_back_when_that_may_help() -> None:
    world = Licensed()
    assert [world.place(name).placed for name in ("a", "b")] == [True, True]
    refused = world.place("c")
    assert refused.message == (
        "0/2 nodes are available: 1 no licence is left in the namespace."
        " Licences refused node n0, which all filters let pass."
    )
    assert list(world.scheduler.pending) == [("default", "c")]
    assert world.scheduler.ledger.stage(("default", "c")) is None
    assert world.scheduler.cache.node_of(("default", "c")) is None
    world.pass_time(60)
    assert world.scheduler.schedule_one() is None, "nothing has happened that helps"
    world.scheduler.set_pod(pod("a", {"node": "n0", "phase": "Running"}))
    world.scheduler.remove_pod(("default", "a"))
    assert world.names() == ["c"]
    assert world.taken == 2


def test_a_refused_pod_is_tried_again_when_the_plugin_says_so() -> None:
    world = Licensed()
    assert [world.place(name).placed for name in ("a", "b", "c")] == [True, True, False]
    world.pass_time(60)
    world.licences.taken.clear()
    world.licences.host.reconsider()
    assert world.names() == ["c"]


def test_a_failed_binding_gives_back_and_is_told_to_those_who_wait() -> None:
    world = Licensed()
    decisions = [world.place(name) for name in ("a", "b", "c")]
    assert decisions[0].claims == {"Licences": "default"}
    world.pass_time(60)
    world.scheduler.forget(pod("b"))
    assert world.taken == 1
    world.scheduler.forget(pod("b"))
    assert world.taken == 1, "given back once"
    assert world.names() == ["c"]


def test_a_pod_that_waits_goes_when_the_plugin_permits_it() -> None:
    world = Licensed()
    world.place("a")
    world.licences.reachable = False
    news: list[bool] = []
    world.scheduler.on_news(lambda: news.append(True))
    world.wait("b")
    assert (world.taken, world.scheduler.cache.pod_count) == (2, 2), "it holds what it was given"
    world.licences.reachable = True
    assert world.scheduler.schedule_one() is None, "nobody has said so"
    world.licences.host.reconsider(("default", "b"))
    assert news
    assert world.scheduler.next_time() == world.now
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert (decision.pod[1], decision.placed) == ("b", True)
    assert world.scheduler.ledger.stage(("default", "b")) == Stage.BINDING


def test_a_pod_that_waits_is_asked_about_again_after_the_events_of_the_plugin() -> None:
    world = Licensed()
    world.place("a")
    world.licences.reachable = False
    world.wait("b")
    world.licences.reachable = True
    world.scheduler.remove_pod(("default", "a"))
    assert world.names() == ["b"]


def test_a_permit_has_its_time() -> None:
    world = Licensed()
    world.place("a")
    world.licences.reachable = False
    world.wait("b")
    due = world.scheduler.next_time()
    assert due == world.now + 60 * 10**9
    world.pass_time(30)
    world.licences.host.reconsider()
    assert world.scheduler.schedule_one() is None
    assert world.scheduler.next_time() == due, "asking again gives no more time"
    world.pass_time(30)
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert decision.message.startswith("0/2 nodes are available: 1 the licence server is away.")
    assert (world.taken, world.scheduler.cache.pod_count) == (1, 1)
    assert list(world.scheduler.pending) == [("default", "b")]


def test_a_permit_may_be_refused_at_once_or_later() -> None:
    answers: list[Refusal | Wait] = [Refusal("not today")]
    world = Licensed(plugin=replace(LICENCES, permit=lambda *_: answers[-1]))
    assert world.place("a").refusals[0].reason == "not today"
    assert (world.taken, world.scheduler.cache.pod_count) == (0, 0)
    answers.append(Wait(world.now + 10**12, "soon"))
    world.wait("b")
    answers.append(Refusal("not tomorrow either"))
    world.licences.host.reconsider(("default", "b"))
    decision = world.scheduler.schedule_one()
    assert decision is not None
    assert (decision.pod[1], decision.refusals[0].reason) == ("b", "not tomorrow either")
    assert sorted(world.scheduler.pending) == [("default", "a"), ("default", "b")]
    assert (world.taken, world.scheduler.cache.pod_count) == (0, 0)


def test_a_gate_keeps_pods_out_of_the_queue_until_it_opens() -> None:
    shut: dict[str, str] = {"a": "the contract is not signed"}
    asked: list[str] = []

    def gate(_state: Licences, view: PodView, _parameters: Parameters) -> Refusal | None:
        asked.append(view.pod.name)
        return Refusal(shut[view.pod.name]) if view.pod.name in shut else None

    world = Licensed(plugin=replace(LICENCES, gate=gate))
    world.submit("a")
    world.submit("b")
    assert world.scheduler.waiting["gated"] == 1
    told, placed = world.scheduler.schedule_one(), world.scheduler.schedule_one()
    assert told is not None
    assert told.message == "0/2 nodes are available. Licences: the contract is not signed."
    assert placed is not None
    assert (placed.pod[1], placed.placed) == ("b", True)
    assert world.scheduler.schedule_one() is None
    world.licences.host.reconsider()
    assert world.scheduler.schedule_one() is None, "it is told once"
    shut.clear()
    world.scheduler.set_pod(pod("b", {"node": "n0", "phase": "Running"}))
    world.scheduler.remove_pod(("default", "b"))
    assert world.names() == ["a"], "an event of the plugin opens it"
    assert asked == ["a", "b", "a", "a"]


def test_a_gate_that_fails_leaves_it_to_the_attempt() -> None:
    def gate(*_: Any) -> None:
        raise ZeroDivisionError

    assert Licensed(plugin=replace(LICENCES, gate=gate)).place("a").placed


@pytest.mark.parametrize("how", ["deleted", "another uid", "terminating", "node gone"])
def test_a_pod_that_waits_gives_back_whatever_ends_it(how: str) -> None:
    world = Licensed()
    world.place("a")
    world.licences.reachable = False
    world.wait("b")
    node = world.scheduler.cache.node_of(("default", "b"))
    assert node is not None
    if how == "deleted":
        world.scheduler.remove_pod(("default", "b"))
    elif how == "another uid":
        world.scheduler.set_pod(replace(pod("b"), uid="another"))
    elif how == "terminating":
        world.scheduler.set_pod(replace(pod("b"), deleted_at=world.now))
    else:
        world.scheduler.remove_node(node)
    assert (world.taken, world.scheduler.cache.pod_count) == (1, 1)
    waits = how in ("another uid", "node gone")
    assert list(world.scheduler.pending) == ([("default", "b")] if waits else [])
    assert not world.scheduler.ledger.waiting


def test_an_error_of_a_plugin_takes_one_decision_and_holds_nothing() -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError

    for plugin in (replace(LICENCES, reserve=fails), replace(LICENCES, permit=fails)):
        world = Licensed(plugin=plugin)
        decision = world.place("a")
        assert "internal error in filter `Licences`" in decision.problem
        assert (world.taken, world.scheduler.cache.pod_count) == (0, 0)
        assert list(world.scheduler.pending) == [("default", "a")]

    def wrong(*_: Any) -> None:
        raise ParameterError("`perNamespace` is missing")

    decision = Licensed(plugin=replace(LICENCES, reserve=wrong)).place("a")
    assert decision.failure is not None
    assert (decision.failure.text, decision.failure.cause) == ("`perNamespace` is missing", None)


def test_what_is_not_confirmed_in_time_is_given_back() -> None:
    world = Licensed(graph_of("30s"))
    world.place("a")
    world.pass_time(31)
    assert world.scheduler.schedule_one() is None
    assert (world.taken, list(world.scheduler.pending)) == (0, [("default", "a")])


def test_a_claim_lasts_as_long_as_its_pod_and_over_revisions() -> None:
    world = Licensed()
    world.place("a")
    world.scheduler.set_pod(pod("a", {"node": "n0", "phase": "Running"}))
    assert world.scheduler.ledger.stage(("default", "a")) == Stage.CONFIRMED
    world.scheduler.replace_graph(graph_of("30s"))
    assert world.taken == 1
    world.scheduler.set_pod(pod("a", {"node": "n0", "phase": "Succeeded"}))
    assert (world.taken, len(world.scheduler.ledger)) == (0, 0)


def test_a_revision_without_the_plugin_lets_go_who_waits_and_still_gives_back() -> None:
    world = Licensed()
    world.place("a")
    world.licences.reachable = False
    world.wait("b")
    world.scheduler.replace_graph(policies())
    assert world.names() == ["b"], "nobody is left to permit it"
    assert world.taken == 2
    for name in ("a", "b"):
        world.scheduler.remove_pod(("default", name))
    assert (world.taken, len(world.scheduler.ledger)) == (0, 0)


def test_pods_that_are_on_nodes_already_are_adopted_once() -> None:
    world = Licensed()
    for _ in range(2):
        world.scheduler.set_pod(pod("old", {"node": "n1", "phase": "Running"}))
    assert world.taken == 1
    world.scheduler.replace_graph(graph_of("30s"))
    assert world.taken == 1
    assert world.scheduler.plugins["Licences"] == {"default": 1}
    world.scheduler.remove_pod(("default", "old"))
    assert world.scheduler.plugins["Licences"] == {}


def test_a_pod_that_somebody_else_has_bound_elsewhere_has_its_claims_made_anew() -> None:
    world = Licensed()
    chosen = world.place("a").node
    other = next(name for name in ("n0", "n1") if name != chosen)
    world.scheduler.set_pod(pod("a", {"node": other, "phase": "Running"}))
    assert world.taken == 1
    account = world.scheduler.ledger.get(("default", "a"))
    assert account is not None
    assert (account.node, account.stage) == (other, Stage.CONFIRMED)


def test_a_revision_on_its_way_takes_from_the_same_state_by_its_own_parameters() -> None:
    world, more = Licensed(), graph_of(licences=3)

    def ahead(pod: str, _: object) -> bool:
        return pod.startswith("default/new")

    world.scheduler.ahead = lambda: (more, ahead)
    assert [world.place(name).placed for name in ("a", "b", "c")] == [True, True, False]
    assert [world.place(name).placed for name in ("new-a", "new-b")] == [True, False]
    assert world.taken == 3
    world.scheduler.remove_pod(("default", "new-a"))
    assert world.taken == 2
    world.licences.reachable = False
    world.pass_time(60)
    assert world.names() == ["c"], "which finds no licence"
    assert [key[1] for key in world.scheduler.ledger.waiting] == ["new-b"]
    world.licences.reachable = True
    world.licences.host.reconsider()
    assert "new-b" in world.names(), "it is permitted by the revision that placed it"
