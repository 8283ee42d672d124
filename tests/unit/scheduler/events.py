"""Random events of a small cluster, for properties."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.unit.scheduler.world import World, metric, node, pod

NODES = ("n0", "n1", "n2", "n3", "n4", "n5")
PODS = ("p0", "p1", "p2", "p3", "p4")

_AMOUNTS = st.fixed_dictionaries({"cpu": st.integers(0, 6), "memory": st.sampled_from(["0", "1Gi", "3Gi"])})
_EXTENDED = st.one_of(
    _AMOUNTS, st.fixed_dictionaries({"kubernetes.io/batch-cpu": st.integers(0, 4000), "cpu": st.just(0)})
)
_NODE = st.fixed_dictionaries(
    {
        "allocatable": st.one_of(
            st.just({"cpu": 8, "memory": "8Gi"}),
            st.just({"cpu": 4, "memory": "16Gi", "kubernetes.io/batch-cpu": 4000}),
        ),
        "labels": st.sampled_from([{}, {"zone": "z1"}, {"zone": "z2"}]),
        "taints": st.sampled_from([[], ["a:NoSchedule"], ["b:PreferNoSchedule"]]),
        "unschedulable": st.booleans(),
    },
    optional={"thresholds": st.just({"usageThresholds": {"cpu": 40}})},
)
_METRIC = st.fixed_dictionaries(
    {"usage": _AMOUNTS, "age": st.sampled_from([0, 30, 400])},
    optional={"pods": st.dictionaries(st.sampled_from(PODS), st.fixed_dictionaries({"usage": _AMOUNTS}))},
)
_POD = st.fixed_dictionaries(
    {"request": _EXTENDED, "priority": st.sampled_from([9500, 5500, 3500, 100])},
    optional={
        "limit": _AMOUNTS,
        "nodeSelector": st.just({"zone": "z1"}),
        "tolerations": st.just([{"key": "a", "operator": "Exists"}]),
    },
)


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens: `act` applies it to a world."""

    name: str
    arguments: tuple[Any, ...] = field(default=())

    def act(self, world: World) -> None:
        _ACTS[self.name](world, *self.arguments)


def _bind(world: World, name: str, where: str, given: Any) -> None:
    world.scheduler.set_pod(pod(name, {**given, "node": where, "phase": "Running"}))


_ACTS: dict[str, Callable[..., Any]] = {
    "node": lambda world, name, given: world.scheduler.set_node(node(name, given)),
    "no node": lambda world, name: world.scheduler.remove_node(name),
    "metric": lambda world, name, given: world.scheduler.set_metric(metric(name, given, world.now)),
    "no metric": lambda world, name: world.scheduler.remove_metric(name),
    "bound": _bind,
    "no pod": lambda world, name: world.scheduler.remove_pod(("default", name)),
    "time": lambda world, seconds: world.pass_time(seconds),
}

STEPS = st.one_of(
    st.builds(lambda *a: Step("node", a), st.sampled_from(NODES), _NODE),
    st.builds(lambda *a: Step("no node", a), st.sampled_from(NODES)),
    st.builds(lambda *a: Step("metric", a), st.sampled_from(NODES), _METRIC),
    st.builds(lambda *a: Step("no metric", a), st.sampled_from(NODES)),
    st.builds(lambda *a: Step("bound", a), st.sampled_from(PODS), st.sampled_from(NODES), _POD),
    st.builds(lambda *a: Step("no pod", a), st.sampled_from(PODS)),
    st.builds(lambda *a: Step("time", a), st.sampled_from([0.3, 1, 100])),
)
ASKED = _POD
