"""Revisions one after the other: those that do not concern the scheduler cost it nothing, all others take effect."""

import json
from collections.abc import Mapping
from itertools import permutations
from typing import Any, Final

import pytest

from koordpolicy.graph import Compiler, Layer, RuleGraph
from koordpolicy.graph.same import differs_for
from koordpolicy.language.cel.values_time import parse_timestamp
from koordpolicy.language.facts import Component
from tests.unit.scheduler.world import PROFILE, World
from tests.vectors.policies import PACK, document

Documents = Mapping[str, Mapping[str, Any]]

NOW: Final = parse_timestamp("2026-06-15T00:00:00Z")


def profile(**spec: Any) -> Mapping[str, Any]:
    return document("SchedulingProfile", "own", {"schedulerName": PROFILE, **spec})


def suppress(threshold: str) -> Mapping[str, Any]:
    return document("CPUSuppress", "own", {"parameters": {"threshold": {"value": threshold}}})


def shop(until: str) -> Mapping[str, Any]:
    return document(
        "PolicyException",
        "shop",
        {
            "owner": "web team",
            "reason": "the shop opens",
            "expires": until,
            "match": {"pods": {"matchLabels": {"app": "web"}}},
            "overrides": {f"SchedulingProfile/{PROFILE}.ties": "Random"},
        },
    )


NUMBER: Final = {"constants": {"spare": {"type": "int", "value": 1}}}
OTHER_NUMBER: Final = {"constants": {"spare": {"type": "int", "value": 2}}}
SPARE: Final = profile(filters=[{"name": "own", "require": {"cel": "constants.spare < 9"}}])
CALLED: Final = profile(filters=[{"name": "own", "require": {"cel": "spare() < 9"}}])


def function(gives: str) -> Mapping[str, Any]:
    return document("Library", "own", {"functions": [{"name": "spare", "expression": gives}]})


BASE: Final[Documents] = {
    "suppress": suppress("65%"),
    "profile": profile(
        parameters={"usageThresholds": {"value": {"cpu": "70%"}}},
        filters=[{"name": "own", "require": {"cel": "has(node.name)"}}],
        ties="First",
    ),
}

UNCONCERNED: Final[Mapping[str, Documents]] = {
    "a threshold of the agent": {"suppress": suppress("60%")},
    "a document of the agent is gone": {"suppress": {}},
    "a formula of the manager": {
        "overcommit": document("Overcommit", "own", {"resource": "batch", "cpu": "7", "precedence": 9})
    },
    "a rule of the webhook": {
        "rule": document(
            "AdmissionRule", "own", {"require": {"cel": "true || pod.name == 'x'"}, "message": "no"}
        )
    },
    "an exception that is over": {"exception": shop("2026-06-01")},
    "an exception of the agent": {
        "exception": document(
            "PolicyException",
            "shop",
            {
                "owner": "web team",
                "reason": "the shop opens",
                "expires": "2026-06-30",
                "match": {"nodes": {"matchLabels": {"pool": "web"}}},
                "overrides": {"CPUSuppress.parameters.threshold": "50%"},
            },
        )
    },
}

CONCERNED: Final[Mapping[str, tuple[Documents, Documents]]] = {
    "a parameter": ({}, {"profile": profile(parameters={"usageThresholds": {"value": {"cpu": "71%"}}})}),
    "a field": ({}, {"profile": profile(ties="Random")}),
    "a weight": (
        {"profile": profile(scores=[{"name": "own", "value": 1, "weight": 1}])},
        {"profile": profile(scores=[{"name": "own", "value": 1, "weight": 2}])},
    ),
    "a filter's expression": (
        {},
        {"profile": profile(filters=[{"name": "own", "require": {"cel": "!has(node.name)"}}])},
    ),
    "a filter more": (
        {},
        {"more": {**profile(filters=[{"name": "more", "require": True}]), "metadata": {"name": "more"}}},
    ),
    "an item without a rule more": (
        {"profile": profile(ties="First")},
        {"profile": profile(ties="First", filters=[{"name": "NodeName"}])},
    ),
    "a match": (
        {"profile": profile(ties="First", match={"pods": {"matchLabels": {"a": "b"}}})},
        {"profile": profile(ties="First", match={"pods": {"matchLabels": {"a": "c"}}})},
    ),
    "the precedence": ({}, {"profile": profile(ties="First", precedence=1)}),
    "a document is gone": ({}, {"profile": {}}),
    "a class": ({}, {"class": document("QoSClass", "ls", {"protectionOrder": 25})}),
    "a band": ({}, {"band": document("PriorityBand", "batch", {"default": 5600})}),
    "a constant": (
        {"library": document("Library", "own", NUMBER), "profile": SPARE},
        {"library": document("Library", "own", OTHER_NUMBER), "profile": SPARE},
    ),
    "a function": (
        {"library": function("1"), "profile": CALLED},
        {"library": function("2"), "profile": CALLED},
    ),
    "an exception in force": ({}, {"exception": shop("2026-06-30")}),
    "the budget": (
        {},
        {
            "bundle": document(
                "PolicyBundle", "own", {"extends": [PACK.name], "budgets": {"costPerDecision": 900_000}}
            )
        },
    ),
}


class Revisions:
    """A compiler, as a process has one. Documents are files of their own; an empty one is none."""

    def __init__(self) -> None:
        self._compiler = Compiler({PACK.name: PACK}.get)

    def graph(self, *layers: Documents) -> RuleGraph:
        """The revision in which later documents of a name take the place of earlier ones."""
        said = {name: one for layer in (BASE, *layers) for name, one in layer.items()}
        files = {f"{name}.yaml": json.dumps(one) for name, one in said.items() if one}
        found = self._compiler.compile(Layer("own", files))
        assert found.graph is not None, [f"{one.code} {one.span} {one.message}" for one in found.found]
        return found.graph.at(NOW)


@pytest.fixture(scope="module")
def revisions() -> Revisions:
    return Revisions()


def world_of(graph: RuleGraph) -> World:
    world = World(graph)
    world.build({"nodes": {"a": {"metric": {"usage": {"cpu": 1, "memory": "1Gi"}}}, "b": {}}})
    world.submit("stuck", {"request": {"cpu": "99"}})
    assert world.names() == ["stuck"]
    return world


@pytest.mark.parametrize("what", UNCONCERNED)
def test_what_concerns_others_changes_nothing_but_the_digest(revisions: Revisions, what: str) -> None:
    old, new = revisions.graph(), revisions.graph(UNCONCERNED[what])
    world = world_of(old)
    placed = world.place("x").node
    scheduler = world.scheduler
    cache, view, said = scheduler.cache, scheduler.cache.view(("default", "x")), scheduler.waiting
    scheduler.replace_graph(new)
    assert scheduler.cache is cache
    assert scheduler.cache.view(("default", "x")) is view
    assert scheduler.cache.node_of(("default", "x")) == placed
    assert scheduler.waiting == said, "nobody is tried again for nothing"
    decision = world.place("y")
    assert decision.placed
    assert decision.digest == new.digest
    assert world.place("z", {"request": {"cpu": "98"}}).digest == new.digest, "refused ones name it, too"


@pytest.mark.parametrize("what", CONCERNED)
def test_what_concerns_it_is_taken(revisions: Revisions, what: str) -> None:
    before, after = CONCERNED[what]
    old, new = revisions.graph(before), revisions.graph(before, after)
    assert differs_for(Component.SCHEDULER, old, new)
    assert differs_for(Component.SCHEDULER, new, old)
    world = world_of(old)
    cache = world.scheduler.cache
    world.scheduler.replace_graph(new)
    assert world.scheduler.cache is not cache
    assert world.scheduler.profile.digest == new.digest
    assert len(world.scheduler.cache) == 2


def test_the_end_of_an_exception_is_taken(revisions: Revisions) -> None:
    during = revisions.graph({"exception": shop("2026-06-30")})
    after = during.at(parse_timestamp("2026-07-01T00:00:00Z"))
    assert differs_for(Component.SCHEDULER, during, after)
    assert not differs_for(Component.AGENT, during, after)


def test_changes_pile_up_over_revisions_that_were_skipped(revisions: Revisions) -> None:
    """It is the revision last gone on to that the next is compared with."""
    world = world_of(revisions.graph())
    cache = world.scheduler.cache
    for threshold in ("61%", "62%", "63%"):
        world.scheduler.replace_graph(revisions.graph({"suppress": suppress(threshold)}))
        assert world.scheduler.cache is cache
    world.scheduler.replace_graph(revisions.graph({"profile": profile(ties="Random")}))
    assert world.scheduler.cache is not cache


def test_each_component_hears_of_its_own_alone(revisions: Revisions) -> None:
    old = revisions.graph()
    suppressed = revisions.graph({"suppress": suppress("60%")})
    found = {one for one in Component if differs_for(one, old, suppressed)}
    assert found == {Component.AGENT}


def test_of_another_compiler_or_watched_it_counts_as_another() -> None:
    graph = Revisions().graph()
    assert not differs_for(Component.SCHEDULER, graph, graph)
    assert differs_for(Component.SCHEDULER, graph, Revisions().graph())
    assert differs_for(Component.SCHEDULER, graph, graph.watched(lambda _, program: program))


def test_what_does_not_differ_decides_alike(revisions: Revisions) -> None:
    """No decision of a component reads as another expression where the graphs do not differ for it."""
    graphs = [revisions.graph(said) for said in UNCONCERNED.values()]
    for old, new in permutations(graphs, 2):
        for component in Component:
            if not differs_for(component, old, new):
                names = {
                    str(key)
                    for key in (
                        *old.for_component(component).decisions,
                        *new.for_component(component).decisions,
                    )
                }
                assert all(old.expression(name) == new.expression(name) for name in names)


def test_all_that_a_scheduler_asks_is_compared(revisions: Revisions) -> None:
    graph = revisions.graph({"profile": {}})
    world = world_of(graph)
    world.place("x")
    world.scheduler.framework.advise(next(iter(world.scheduler.cache.pods()))[0])
    assert graph.asked
    assert all(Component.SCHEDULER in graph.decision(name).components for name in graph.asked)
