"""Why an evaluation can fail, as values."""

from dataclasses import dataclass
from enum import StrEnum

from koordpolicy.language.cel import ir


class FailureCause(StrEnum):
    """What a node can fail of. Limits (of cost and sizes) and defects are none of these: nothing foresees them here."""

    KEY = "key"
    """A map need not have the key."""
    FACT = "fact"
    """A fact that may be missing."""
    INDEX = "index"
    """A list need not be so long."""
    OPTIONAL = "optional"
    """An optional need not have a value."""
    ZERO = "zero"
    """A divisor may be zero."""
    ARGUMENT = "argument"
    """A function does not take every value of its argument: a text that is no number, an offset beyond the end."""
    OVERFLOW = "overflow"
    """A result may lie outside the range of its type."""
    TYPE = "type"
    """A value of any type need not be of the one that is wanted."""
    DUPLICATE = "duplicate"
    """Two keys of a map that is made may be the same."""


@dataclass(frozen=True, slots=True)
class PossibleFailure:
    """A node that can fail. `atom` is what would have to be known for it not to: equal failures have equal atoms.

    `certain` where it fails whenever it is reached: its operands are constants.
    """

    node: ir.Node
    cause: FailureCause
    atom: tuple[object, ...]
    certain: bool = False
