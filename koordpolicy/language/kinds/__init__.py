"""The kinds of policy documents: what each may say, and which of its values are decisions.

A kind is a pydantic model of its `spec` and one line in `table.KINDS`. Its fields are either plain
(names, structure) or slots: values that may be literals or `{cel: ...}` and become decisions of
the rule graph. What a slot's type, unit, combination and meaning are stands in its annotation, and
schemas, manual, checker and graph all read it there.

Models hold only rules that JSON Schema can express as well, so that an editor and `check` agree on
every document; rules between fields are passes of the compiler.
"""

from koordpolicy.language.kinds.base import (
    Condition,
    Declaration,
    LabelSelector,
    Match,
    PolicySpec,
    Requirement,
    Spec,
    Variable,
)
from koordpolicy.language.kinds.fields import PolicyModel
from koordpolicy.language.kinds.literals import BadLiteral, LiteralProblem, literal_problem, literal_value
from koordpolicy.language.kinds.parameters import Parameter
from koordpolicy.language.kinds.slots import Cel, Combine, Expression, Slot
from koordpolicy.language.kinds.table import API_VERSION, KINDS, Kind
from koordpolicy.language.kinds.typenames import parse_type, type_name
from koordpolicy.language.kinds.walk import (
    CelPath,
    CelValue,
    SlotPath,
    SlotValue,
    cel_values,
    slot_values,
    slots,
)

__all__ = [
    "API_VERSION",
    "KINDS",
    "BadLiteral",
    "Cel",
    "CelPath",
    "CelValue",
    "Combine",
    "Condition",
    "Declaration",
    "Expression",
    "Kind",
    "LabelSelector",
    "LiteralProblem",
    "Match",
    "Parameter",
    "PolicyModel",
    "PolicySpec",
    "Requirement",
    "Slot",
    "SlotPath",
    "SlotValue",
    "Spec",
    "Variable",
    "cel_values",
    "literal_problem",
    "literal_value",
    "parse_type",
    "slot_values",
    "slots",
    "type_name",
]
