"""What can go wrong in a policy, and which test would notice it."""

from enum import StrEnum


class Operator(StrEnum):
    """One kind of slip. The value is its name in results."""

    COMPARISON = "comparison"
    BOUNDARY = "boundary"
    ARITHMETIC = "arithmetic"
    TERM = "term"
    BOUND = "bound"
    OPERANDS = "operands"
    NUMBER = "number"
    UNIT = "unit"
    TEXT = "text"
    TRUTH = "truth"
    LOGIC = "logic"
    GUARD = "guard"
    PRESENCE = "presence"
    NEGATION = "negation"
    ARM = "arm"
    FUNCTION = "function"
    FILTER = "filter"
    ENTRY = "entry"
    ORDER = "order"
    FACT = "fact"
    CONDITION = "condition"
    SELECTOR = "selector"
    PRECEDENCE = "precedence"

    @property
    def noticed_by(self) -> str:
        """The kind of test that notices such a slip, as a phrase."""
        return _NOTICED_BY[self]


_NOTICED_BY = {
    Operator.COMPARISON: "a case on each side of the comparison",
    Operator.BOUNDARY: "a case in which both sides are equal",
    Operator.ARITHMETIC: "a case in which neither operand is 0 or 1",
    Operator.TERM: "a case in which the term that is gone is not 0",
    Operator.BOUND: "a case in which the bound that is gone decides",
    Operator.OPERANDS: "a case in which the two operands differ",
    Operator.NUMBER: "a case whose answer depends on the number",
    Operator.UNIT: "a case whose answer depends on the amount",
    Operator.TEXT: "a case with this very text, and one with another",
    Operator.TRUTH: "a case whose answer depends on it",
    Operator.LOGIC: "a case in which one operand is true and the other false",
    Operator.GUARD: "a case in which the operand that is gone decides alone",
    Operator.PRESENCE: "a case in which the fact is missing",
    Operator.NEGATION: "a case in which it is true, and one in which it is false",
    Operator.ARM: "a case for each arm, with another answer",
    Operator.FUNCTION: "a case in which the two functions differ",
    Operator.FILTER: "a case with an element that the filter leaves out",
    Operator.ENTRY: "a case for this very entry",
    Operator.ORDER: "a case in which the order decides",
    Operator.FACT: "a case in which the two facts differ",
    Operator.CONDITION: "a case in which the condition does not hold",
    Operator.SELECTOR: "a case that is selected, and one that is not",
    Operator.PRECEDENCE: "a case to which both documents apply",
}
