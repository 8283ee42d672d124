"""Catalogue: the classes and bands of the revision become constants that expressions may read."""

from koordpolicy.graph.catalogue import catalogue_constants, classes_of
from koordpolicy.graph.decide import Expressions
from koordpolicy.graph.rules import Decision
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.row import compile_row


def catalogue(state: State) -> None:
    """Fill `classes` and the constants of the space `catalogue`."""
    expressions = Expressions(state.decisions, state.constants)

    def evaluate(decision: Decision) -> object:
        value = expressions.value(decision)
        if isinstance(value, ir.Const):
            return value.value
        try:
            return compile_row((), value).call()
        except CelError:
            return None  # an expression without facts that fails is reported by `unusable`

    state.classes = classes_of(state.decisions, evaluate)
    state.constants.update(catalogue_constants(state.classes))
