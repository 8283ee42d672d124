"""Catalogue: the classes and bands of the revision become constants that expressions may read."""

from koordpolicy.graph.catalogue import PRIORITY_BAND, QOS_CLASS, Classes, catalogue_constants, classes_of
from koordpolicy.graph.decide import Expressions
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.row import compile_row


def catalogue(state: State) -> None:
    """Fill `classes` and the constants of the space `catalogue`."""
    expressions = Expressions(state.decisions, state.constants, state.cache)
    concerned = {key: one for key, one in state.decisions.items() if key.kind in (QOS_CLASS, PRIORITY_BAND)}
    values = {key: expressions.value(one) for key, one in concerned.items()}

    def make() -> tuple[Classes, dict[tuple[str, str], ir.Node]]:
        classes = classes_of(concerned, lambda decision: _evaluated(values[decision.key]))
        return classes, catalogue_constants(classes)

    state.classes, constants = state.cache.same(("catalogue", *values), tuple(values.values()), make)
    state.constants.update(constants)


def _evaluated(value: ir.Node) -> object:
    if isinstance(value, ir.Const):
        return value.value
    try:
        return compile_row((), value).call()
    except CelError:
        return None  # an expression without facts that fails is reported by `unusable`
