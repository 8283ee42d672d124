"""Post-filters beside preemption: shown with one that is no part of the package, and sends pods away that are spare."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from koordpolicy.algorithms.eviction import Victims
from koordpolicy.cluster.events import Event
from koordpolicy.cluster.pods import PodView
from koordpolicy.graph import Compiler, Layer
from koordpolicy.language.kinds.plugins import PLUGINS as NAMES
from koordpolicy.language.kinds.plugins import PluginName
from koordpolicy.model.pod import PodKey
from koordpolicy.scheduler.decision import NoCandidate, PostFilterResult, Victim
from koordpolicy.scheduler.plugins import PLUGINS, Plugin
from koordpolicy.scheduler.plugins.base import FilterResults, FilterRun, PostFilterHost
from koordpolicy.scheduler.profile import Profile, ProfileError
from koordpolicy.scheduler.role import Role
from tests.unit.scheduler.world import World, pod
from tests.vectors.policies import PACK

NAME = PluginName("Spares", "Pods that are spare go.", filters=True, preempts=True)


class Spares:
    """Sends the spare pods of one node away, if the pod passes there then."""

    def __init__(self, host: PostFilterHost) -> None:
        self._cache = host.cache
        self.helped_by = frozenset({Event.POD_CHANGED})

    def may_free(self, records: Mapping[str, Any], node: str, lacking: Mapping[str, int]) -> bool:
        return any(view.pod.labels.get("spare") for view in self._cache.pods_on(node).values())

    def alike(self, records: Mapping[str, Any]) -> Hashable:
        return True

    def find(self, run: FilterRun, results: FilterResults) -> PostFilterResult | NoCandidate:
        for row in np.flatnonzero(~run.unresolvable(results)).tolist():
            node = self._cache.table.name(row)
            spare = [view for view in self._cache.pods_on(node).values() if view.pod.labels.get("spare")]
            if spare and self._passes_without(run, node, spare):
                return PostFilterResult(node, tuple(Victim(one.pod.key, one.pod.uid) for one in spare))
        return NoCandidate({}, "nothing is spare")

    def could(self, run: FilterRun, results: FilterResults) -> str | None:
        found = self.find(run, results)
        return None if isinstance(found, NoCandidate) else found.node

    def beside(self, run: FilterRun, node: str, going: Collection[PodKey]) -> Victims[PodKey] | None:
        raise AssertionError("nobody asks for an extender here")

    def _passes_without(self, run: FilterRun, node: str, spare: list[PodView]) -> bool:
        table = self._cache.table
        with self._cache.trial():
            self._cache.displace(*(view.pod.key for view in spare))
            results = run.evaluate(table, np.array([table.index(node)]))
            return results.feasible() is None


SPARES = Plugin(post_filter=Spares)
BOTH = ("Spares", "DefaultPreemption")
AS_FILTER = {"filters": [{"name": "Spares", "plugin": "Spares"}]}
NEVER = {"preemption": {"policy": "Never"}}
INSTEAD = {"preemption": {"plugin": "Spares"}}
TOO_LARGE = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


class Case(NamedTuple):
    """In which order the table has them, what policy says; who goes for a pod of that many CPUs, or why nobody does."""

    table: tuple[str, ...]
    profile: dict[str, Any]
    goes: str = ""
    why: str = ""
    cpu: str = "8"


CASES = {
    "the first of the table that makes room wins": Case(BOTH, AS_FILTER, "spare"),
    "the other one where it stands first": Case(BOTH[::-1], AS_FILTER, "weak"),
    "the second is asked where the first makes none": Case(BOTH[::-1], {**AS_FILTER, **NEVER}, "spare"),
    "where none does, the first says why": Case(
        BOTH, AS_FILTER, why="preemption: nothing is spare.", cpu="11"
    ),
    "and the other one where it stands first": Case(BOTH[::-1], AS_FILTER, why=TOO_LARGE, cpu="11"),
    "one that no profile names is not asked": Case(BOTH, {}, "weak"),
    "policy names the one that preempts": Case(BOTH, INSTEAD, "spare"),
    "named twice it is asked once": Case(BOTH, {**AS_FILTER, **INSTEAD}, "spare"),
}


def world_of(table: tuple[str, ...], profile: dict[str, Any]) -> World:
    compiler = Compiler({PACK.name: PACK}.get, plugins={**NAMES, "Spares": NAME})
    spec = {"schedulerName": "koord-scheduler", **profile}
    document = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "SchedulingProfile",
        "metadata": {"name": "own"},
        "spec": spec,
    }
    compilation = compiler.compile(Layer("overlay", {"overlay/own.yaml": str(document)}))
    assert compilation.graph is not None, [one.message for one in compilation.found]
    others = {name: plugin for name, plugin in PLUGINS.items() if name not in BOTH}
    known = {**PLUGINS, "Spares": SPARES}
    return World(compilation.graph, role=Role(plugins={**others, **{name: known[name] for name in table}}))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_order_of_the_table_decides(case: Case) -> None:
    world = world_of(case.table, case.profile)
    full = {"request": {"cpu": "9", "memory": "1Gi"}}
    weak = {**full, "priority": 5500}
    spare = {**full, "priority": 9999, "labels": {"spare": "yes"}}
    world.build({"nodes": {"n0": {"pods": {"weak": weak}}, "n1": {"pods": {"spare": spare}}}})
    decision = world.place("new", {"request": {"cpu": case.cpu, "memory": "1Gi"}})
    if case.goes:
        assert decision.preemption is not None
        assert [victim.pod[1] for victim in decision.preemption.victims] == [case.goes]
        assert world.scheduler.ledger.promised_to(("default", "new")) == decision.preemption.node
        assert world.scheduler.ledger.leaves(pod(case.goes, {}))
    else:
        assert decision.preemption is None
        assert decision.message.endswith(case.why), decision.message


def test_a_profile_without_a_post_filter_heeds_no_promise() -> None:
    def bare(profile: Profile) -> Profile:
        return replace(profile, post_filters=())

    waits = {"request": {"cpu": "9", "memory": "1Gi"}, "priority": 9999}
    for role, placed in ((Role(), False), (Role(steps=bare), True)):
        world = World(role=role)
        world.build({"nodes": {"n0": {}}})
        world.scheduler.ledger.promise(world.scheduler.framework.cycle(pod("first", waits)).view, "n0")
        decision = world.place("second", {**waits, "priority": 5500})
        assert decision.placed == placed


def test_a_profile_whose_plugin_the_table_lacks_is_refused() -> None:
    with pytest.raises(ProfileError, match="no plugin `DefaultPreemption` that makes room"):
        world_of((), {})
