"""What a test implies in its arms changes no value and no failure."""

import pytest

from koordpolicy.graph.proof.draws import Draws
from koordpolicy.graph.proof.goal import arguments
from koordpolicy.graph.proof.implied import with_implied
from koordpolicy.graph.proof.pools import Pools
from koordpolicy.graph.proof.reads import reads_of
from koordpolicy.graph.proof.same import same_value
from koordpolicy.graph.proof.search import Search
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.facts import ROOTS
from tests.unit.graph.proof.expressions import EXPRESSIONS, of_text
from tests.unit.graph.proof.test_encoding import _Nothing

_HAS = "has(node.usage.total.cpu)"
_USE = "node.usage.total.cpu"
_SYSTEM = "has(node.usage.system.cpu)"

# An expression, and how often it asks whether a fact is there once its tests speak for its arms.
CASES = (
    (f"{_HAS} ? ({_HAS} ? {_USE} : cpu('1')) : cpu('2')", 1),
    (f"{_HAS} ? cpu('2') : ({_HAS} ? {_USE} : cpu('1'))", 1),
    (f"!{_HAS} ? cpu('2') : ({_HAS} ? {_USE} : cpu('1'))", 1),
    (f"{_HAS} && pod.name == 'a' ? ({_HAS} ? {_USE} : cpu('1')) : ({_HAS} ? {_USE} : cpu('2'))", 2),
    (f"{_HAS} || pod.name == 'a' ? ({_HAS} ? {_USE} : cpu('1')) : ({_HAS} ? {_USE} : cpu('2'))", 2),
    (
        f"({_HAS} ? {_USE} > cpu('1') : false) ? ({_HAS} ? {_USE} : cpu('1')) : ({_HAS} ? {_USE} : cpu('2'))",
        2,
    ),
    (f"({_HAS} ? true : pod.name == 'a') ? ({_HAS} ? {_USE} : cpu('1')) : ({_HAS} ? {_USE} : cpu('2'))", 2),
    (f"{_HAS} && {_SYSTEM} ? ({_HAS} ? ({_SYSTEM} ? {_USE} : cpu('3')) : cpu('1')) : cpu('2')", 2),
    (
        "node.pods.exists(p, has(p.usage.cpu)) ? node.pods.filter(p, has(p.usage.cpu)).map(p, p.usage.cpu).sum() : cpu('0')",
        2,
    ),
    (f"{_HAS} ? node.pods.map(p, {_HAS} && has(p.usage.cpu) ? p.usage.cpu : {_USE}).sum() : cpu('0')", 2),
)


@pytest.mark.parametrize(("text", "asked"), CASES)
def test_a_fact_is_asked_for_once_on_a_way(text: str, asked: int) -> None:
    changed = with_implied(of_text(text))
    assert sum(isinstance(node, ir.HasField) for node in _tree(changed)) == asked


def _tree(root: ir.Node) -> list[ir.Node]:
    """Every node as often as it stands in the expression, shared ones once."""
    return list(walk(root))


@pytest.mark.parametrize("text", [*EXPRESSIONS, *(text for text, _ in CASES)])
def test_no_value_changes(text: str) -> None:
    node = of_text(text)
    changed = with_implied(node)
    if changed is node:
        return
    reads = reads_of([node])
    search = Search(_Nothing(node), reads, Pools(reads, {}), Draws(text.encode().ljust(8)))
    before, after = compile_row(tuple(ROOTS), node), compile_row(tuple(ROOTS), changed)
    for _ in range(200):
        records = search.change(search.rng.choice(search.situations).records)
        try:
            value = before.call(*arguments(before.roots, records))
        except CelError:
            with pytest.raises(CelError):
                after.call(*arguments(after.roots, records))
        else:
            assert same_value(value, after.call(*arguments(after.roots, records)))
