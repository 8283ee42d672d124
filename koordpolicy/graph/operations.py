"""Which requests an AdmissionRule is asked of."""

from collections.abc import Mapping
from typing import Final

from koordpolicy.graph.rules import Decision, DecisionKey
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.types import BOOL, STRING, list_of
from koordpolicy.language.facts import ROOTS

USUAL: Final = frozenset(("CREATE", "UPDATE"))
"""Those of a rule that names none."""


def operations_of(decisions: Mapping[DecisionKey, Decision], key: DecisionKey) -> frozenset[str]:
    """The operations of the rule that a decision belongs to, in all its documents together."""
    decision = decisions.get(DecisionKey(key.kind, key.subject, "operations"))
    values = [] if decision is None else [rule.value for rule in decision.rules]
    said: set[str] = set()
    if not values or not all(isinstance(value, ir.Const) for value in values):
        said.update(USUAL)
    for value in values:
        if isinstance(value, ir.Const) and isinstance(value.value, list | tuple):
            said.update(map(str, value.value))
    return frozenset(said)


def within_operations(decisions: Mapping[DecisionKey, Decision], key: DecisionKey) -> ir.Node:
    """`operation in [...]`, as the rule that a decision belongs to says."""
    listed = constant(list_of(STRING), sorted(operations_of(decisions, key)))
    return ir.Call(BOOL, "@in(dyn,list)", (ir.Var(ROOTS["operation"].type, "operation"), listed))
