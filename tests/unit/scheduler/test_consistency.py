"""However a state came about, it is the same state: rows, loads, remembered answers."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.graph import RuleGraph
from koordpolicy.scheduler.cycle import Cycle
from koordpolicy.scheduler.evaluation import evaluate
from tests.unit.scheduler.events import ASKED, NODES, STEPS, Step
from tests.unit.scheduler.world import World, pod, policies

# A filter of its own reads the pods of nodes, so that those facts are kept too.
GRAPH: RuleGraph = policies(
    {
        "filters": [
            {"name": "few", "require": {"cel": "size(node.pods) < 4 && node.free.cpu > cpu('-100')"}}
        ],
        "parameters": {"prodUsageThresholds": {"value": {"memory": "60%"}}},
    }
)


def rows(world: World) -> dict[str, dict[str, Any]]:
    table = world.scheduler.cache.table
    return {name: _comparable(table.row(table.index(name))) for name in table.names}


def _comparable(row: Any) -> dict[str, Any]:
    facts = dict(row)
    facts["pods"] = sorted(facts["pods"], key=lambda record: record["name"])
    # A resource that nobody requests any more is as good as one that nobody ever did.
    for path in ("resources.requested", "resources.nonzeroRequested"):
        facts[path] = {resource: amount for resource, amount in facts[path].items() if amount}
    return facts


# Each example makes a scheduler, which compiles its programs.
FEW = settings(max_examples=25)


@FEW
@given(st.lists(STEPS, max_size=25))
def test_rows_depend_on_what_is_and_not_on_how_it_came(steps: list[Step]) -> None:
    lived, told = World(GRAPH), World(GRAPH)
    state: dict[tuple[str, str], Step] = {}
    for step in steps:
        if step.name == "time":
            continue  # when a pod was first seen bound is part of what is
        step.act(lived)
        key = (
            "pod" if step.name in ("bound", "no pod") else step.name.removeprefix("no "),
            step.arguments[0],
        )
        if step.name.startswith("no "):
            state.pop(key, None)
        else:
            state[key] = step
    for step in sorted(state.values(), key=lambda step: step.name):
        step.act(told)
    assert rows(lived) == rows(told)


@FEW
@given(
    st.lists(ASKED, min_size=2, max_size=3), st.lists(st.lists(STEPS, max_size=2), min_size=4, max_size=20)
)
def test_remembered_answers_are_those_that_would_be_given_anew(
    said: list[Any], story: list[list[Step]]
) -> None:
    world = World(GRAPH)
    for name in NODES:
        Step("node", (name, {})).act(world)
    asked = [pod(f"q{number}", one) for number, one in enumerate(said)]
    for steps in story:
        for step in steps:
            step.act(world)
        remembered = [world.scheduler.framework.decide(one) for one in asked]
        world.scheduler.framework.forget_answers()
        assert remembered == [world.scheduler.framework.decide(one) for one in asked]


@FEW
@given(st.lists(STEPS, max_size=15), ASKED)
def test_columns_say_of_each_node_what_rows_say(steps: list[Step], said: Any) -> None:
    world = World(GRAPH)
    for name in NODES:
        Step("node", (name, {})).act(world)
    for step in steps:
        step.act(world)
    scheduler = world.scheduler
    cycle = scheduler.framework.cycle(pod("asked", said))
    evaluation = evaluate(cycle, scheduler.cache.table)
    for at, name in enumerate(scheduler.cache.table.names):
        row = dict(scheduler.cache.table.row(scheduler.cache.table.index(name)))
        for filtered in evaluation.filters:
            if filtered.accepted is not None:
                field = f"filters[{filtered.step.name}].require"
                assert filtered.accepted[at] == _by_row(field, row, cycle)
        for scored in evaluation.scores:
            if scored.scores is not None and scored.step.expression:
                assert scored.scores[at] == _by_row(f"scores[{scored.step.name}].value", row, cycle)


def _by_row(field: str, row: dict[str, Any], cycle: Cycle) -> Any:
    return GRAPH.value(f"SchedulingProfile/koord-scheduler.{field}", node=row, **cycle.records)
