"""Trials: whatever is placed, displaced, promised and planned in one, afterwards all is as it was before."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.cluster.cache import ClusterCache
from koordpolicy.cluster.label_sets import Wanted
from koordpolicy.cluster.loads import LoadPolicy
from koordpolicy.cluster.pods import PodView, view_of
from koordpolicy.cluster.state import ClusterState
from koordpolicy.cluster.undo_log import UndoLog
from koordpolicy.cluster.volume_plan import VolumeBind, VolumePlan
from koordpolicy.model.labels import LabelRequirement, LabelSelector, Operator
from koordpolicy.model.neighbours import PodTerm
from koordpolicy.model.pod_ports import HostPort
from koordpolicy.scheduler.decision import PostFilterResult, Victim
from koordpolicy.scheduler.ledger import Ledger
from tests.unit.scheduler.world import START, metric, node, pod, policies

GRAPH = policies({})
LOAD = LoadPolicy(GRAPH, "koord-scheduler")
NAMES = ("n0", "n1", "n2", "gone")
"""Nodes, the last of which is not known."""
KEYS = tuple(("default", f"p{at}") for at in range(5))
_APP_WEB = LabelSelector((LabelRequirement("app", Operator.IN, frozenset({"web"})),))
WEB = Wanted((PodTerm(_APP_WEB, frozenset({"default"})),))
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
PODS: tuple[dict[str, Any], ...] = (
    {"request": {"cpu": "2", "memory": "1Gi"}},
    {"labels": {"app": "web"}, "affinity": APART},
    {"hostNetwork": True, "containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}], "labels": {"app": "db"}},
)


class Stop(Exception):
    """Ends a trial before its end."""


@dataclass
class World:
    """A cache with reports, and a ledger that takes part in its trials."""

    cache: ClusterCache
    ledger: Ledger

    @classmethod
    def begin(cls) -> "World":
        log = UndoLog()
        cache = ClusterCache(LOAD, GRAPH.catalogue, frozenset({"pods"}), ClusterState(log))
        for name in NAMES[:3]:
            cache.set_node(node(name, {"labels": {"host": name}}))
        cache.set_metric(metric("n0", {"usage": {"cpu": 3}, "pods": {"p0": {"usage": {"cpu": 1}}}}, START))
        return cls(cache, Ledger(log))

    def picture(self) -> Any:
        """All that can be seen of it but the versions that only grow, orders included."""
        cache, state = self.cache, self.cache.state
        count = len(cache)
        plain = [dict(cache.table.row(at)) for at in range(count)]
        columns = [cache.table.column(path) for path in ("requested.cpu", "free.cpu", "load.cpu", "ownedCPU")]
        return (
            plain,
            [(one.values.tolist(), None if one.absent is None else one.absent.tolist()) for one in columns],
            list(cache.pods()),
            [(list(cache.pods_on(name)), cache.changes_on(name)) for name in NAMES],
            [(key, cache.node_of(key), cache.view(key)) for key in KEYS],
            cache.pod_count,
            state.label_sets.counts(WEB).array(count).tolist(),
            state.ports.taken((HostPort("TCP", "10.0.0.1", 80),), count).tolist(),
            [(key, counts.array(count).tolist()) for key, counts in state.apart.about(state.label_sets, "default", {"app": "web"}) if counts],
            state.volumes.used(("default", "c")),
            [id(one) for one in state.volumes.planned],
            [(name, list(pods.items())) for name, pods in self.ledger.promises.items()],
            [self.ledger.promised_to(key) for key in KEYS],
            [self.ledger.leaves(pod(key[1])) for key in KEYS],
        )  # fmt: skip

    def act(self, change: tuple[Any, ...]) -> None:
        match change:
            case ("place", at, kind, name):
                self.cache.place(_view(at, kind), name, START + at)
            case ("displace", *several):
                self.cache.displace(*(KEYS[at] for at in several))
            case ("promise", at, name):
                self.ledger.promise(_view(at, 0), name)
            case ("retract", at):
                self.ledger.retract(KEYS[at])
            case ("make room", at, other, name):
                made = PostFilterResult(name, (Victim(KEYS[other], f"uid-p{other}"),), cleared=(KEYS[other],))
                self.ledger.made_room(_view(at, 0), made)
            case ("plan", at):
                self.cache.state.volumes.plan(_PLANS[at])
            case ("give up", at):
                self.cache.state.volumes.give_up(_PLANS[at])
            case ("trial", changes, raises, rows_only):
                with suppress(Stop), self.cache.trial(rows_only=rows_only):
                    for one in changes:
                        self.act(one)
                    if raises:
                        raise Stop


def _view(at: int, kind: int) -> PodView:
    return view_of(pod(KEYS[at][1], PODS[kind]), GRAPH.catalogue, LOAD.estimate)


_PLANS = tuple(
    VolumePlan("n0", (VolumeBind(f"v{at}", ("default", "c")),), (("default", f"d{at // 2}"),))
    for at in range(4)
)
_POD = st.integers(0, len(KEYS) - 1)
_NODE = st.sampled_from(NAMES)
_CHANGE = st.one_of(
    st.tuples(st.just("place"), _POD, st.integers(0, len(PODS) - 1), _NODE),
    st.lists(_POD, min_size=1, max_size=3, unique=True).map(lambda several: ("displace", *several)),
    st.tuples(st.just("promise"), _POD, _NODE),
    st.tuples(st.just("retract"), _POD),
    st.tuples(st.just("make room"), _POD, _POD, _NODE),
    st.tuples(st.just("plan"), st.integers(0, 3)),
    st.tuples(st.just("give up"), st.integers(0, 3)),
)
_CHANGES = st.lists(
    st.recursive(
        _CHANGE,
        lambda inner: st.tuples(st.just("trial"), st.lists(inner, max_size=5), st.booleans(), st.booleans()),
        max_leaves=8,
    ),
    max_size=10,
)


@settings(max_examples=150)
@given(st.lists(_CHANGE, max_size=10), _CHANGES, st.booleans(), st.booleans())
def test_after_a_trial_everything_is_as_before(
    before: list[Any], changes: list[Any], raises: bool, rows_only: bool
) -> None:
    world = World.begin()
    for change in before:
        world.act(change)
    picture = world.picture()
    world.act(("trial", changes, raises, rows_only))
    assert world.picture() == picture
    world.act(("displace", *range(len(KEYS))))  # all that is kept fits together still
    assert world.cache.pod_count == 0


@settings(max_examples=60)
@given(st.lists(_CHANGE, max_size=10), st.lists(_CHANGE, max_size=8))
def test_in_a_trial_everything_is_as_if_it_were_so(before: list[Any], changes: list[Any]) -> None:
    tried, done = World.begin(), World.begin()
    for world in (tried, done):
        for change in before:
            world.act(change)
    for change in changes:
        done.act(change)
    with tried.cache.trial():
        for change in changes:
            tried.act(change)
        for place in (0, 1):
            assert tried.picture()[place] == done.picture()[place]


def test_rows_that_nobody_saw_changed_do_not_count_as_touched() -> None:
    world = World.begin()
    world.act(("place", 0, 0, "n1"))
    table = world.cache.table
    version = table.version
    with world.cache.trial():
        world.act(("displace", 0))
    touched = table.touched_since(version)
    assert touched is not None
    assert not len(touched)
    with world.cache.trial():
        world.act(("displace", 0))
        seen = table.version
    touched = table.touched_since(seen)
    assert touched is not None
    assert [table.name(int(row)) for row in touched] == ["n1"]


def test_nodes_do_not_change_in_a_trial() -> None:
    world = World.begin()
    with pytest.raises(AssertionError, match="do not change in a trial"), world.cache.trial():
        world.cache.set_node(node("n3", {}))
