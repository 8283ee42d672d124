"""The decisions that are asked of all nodes at once run on columns, without falling back to single nodes."""

import pytest

from koordpolicy.cli.bundle import graph_of
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.lower.columns import compile_columns

ASKED_OF_ALL_NODES = ("SchedulingProfile", "Overcommit")

WHEN_WRITTEN = ("onMissing", "publish")
"""What nodes have a say in, and is asked of a node when something is written to it: what it says is checked one by one."""


@pytest.fixture(scope="module")
def pack() -> RuleGraph:
    return graph_of([])


def test_scheduling_and_overcommit_of_the_pack_are_all_column_wise(pack: RuleGraph) -> None:
    left_to_rows = {}
    for key, decision in pack.decisions.items():
        # A zone is not a row of the node table: its formulas are asked zone by zone.
        if key.kind not in ASKED_OF_ALL_NODES or "node" not in decision.roots or "zone" in decision.roots:
            continue
        if key.kind == "Overcommit" and key.field.split(".")[0] in WHEN_WRITTEN:
            continue
        program = compile_columns(pack.expression(str(key)), "node", decision.roots)
        if program.fallback:
            left_to_rows[str(key)] = program.fallback
    assert left_to_rows == {}


def test_there_is_something_to_ask(pack: RuleGraph) -> None:
    asked = {key.kind for key, one in pack.decisions.items() if "node" in one.roots and one.rules}
    assert set(ASKED_OF_ALL_NODES) <= asked
