"""The algebra of units: which operations on quantities mean something, and how they are carried out.

| operands | `+ -` | `*` | `/` |
|---|---|---|---|
| same unit | that unit | | ratio |
| quantity, ratio (double) | | quantity, cut toward zero | quantity, cut toward zero |
| quantity, percentage | | quantity, cut toward zero | |
| quantity, count (int) | | quantity | quantity, cut toward zero |

A quantity is CPU, bytes, bandwidth or an amount (held as int); a percentage is held as double and
takes ratios and counts as well. Percentages compare with ratios as shares.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.language.cel.types import DOUBLE, INT, Type, Unit
from koordpolicy.language.cel.wording import spoken, spoken_bare

KEEPS_UNIT = frozenset(
    (
        "max", "min", "sum", "math.greatest", "math.least", "math.abs", "math.ceil", "math.floor",
        "math.round", "math.trunc", "sort",
    )
)  # fmt: skip
"""Functions of numbers whose result has the unit of their arguments."""

KEEPS_FIRST = frozenset(("percentile",))
"""Functions whose result has the unit of the first argument, and whose other arguments have none."""

DROPS_UNIT = frozenset(
    (
        "string", "double", "int", "number", "math.sign", "math.isNaN", "math.isInf", "math.isFinite",
        "isSorted", "percentText",
    )
)  # fmt: skip
"""Functions that take a quantity of any unit for the number it is; `string` those of `shown_by` alone where it is said which."""


@dataclass(frozen=True, slots=True)
class OperationPlan:
    """How an operation on quantities is carried out.

    `swap` puts the right operand first; `widen` converts operands held as int to double.
    """

    overload: str
    result: Type
    swap: bool = False
    widen: bool = False


def arithmetic(operator: str, left: Type, right: Type) -> OperationPlan | None:
    """The plan for `+ - * / %` on two numbers of which at least one has a unit; None when it has no
    meaning. Literal zeros have taken the other side's unit before, where they may.
    """
    if operator in ("_+_", "_-_") or (operator == "_%_" and left.name == "int"):
        return OperationPlan(f"{operator}({left.name},{left.name})", left) if left == right else None
    if operator == "_*_":
        return _product(left, right)
    return _quotient(left, right) if operator == "_/_" else None


def _product(left: Type, right: Type) -> OperationPlan | None:
    if left.unit is None or (left.unit is Unit.PERCENT and right.unit not in (None, Unit.PERCENT)):
        turned = _product(right, left)
        return None if turned is None else OperationPlan(turned.overload, turned.result, True, turned.widen)
    if left.unit is Unit.PERCENT:
        fits = right in (DOUBLE, INT)
        return OperationPlan("_*_(double,double)", left, widen=right == INT) if fits else None
    if right.unit is Unit.PERCENT:
        return OperationPlan("percent_of(int,double)", left)
    if right == DOUBLE:
        return OperationPlan("scale(int,double)", left)
    return OperationPlan("_*_(int,int)", left) if right == INT else None


def _quotient(left: Type, right: Type) -> OperationPlan | None:
    if left.unit is None:
        return None
    if left == right:
        return OperationPlan(f"quotient({left.name},{left.name})", DOUBLE)
    if left.unit is Unit.PERCENT:
        fits = right in (DOUBLE, INT)
        return OperationPlan("_/_(double,double)", left, widen=right == INT) if fits else None
    if right == INT:
        return OperationPlan("_/_(int,int)", left)
    return OperationPlan("divide(int,double)", left) if right == DOUBLE else None


def comparable_as_share(left: Type, right: Type) -> bool:
    """Whether one is a percentage and the other a plain ratio."""
    units = {left.unit, right.unit}
    plain = left if left.unit is None else right
    return units == {Unit.PERCENT, None} and plain == DOUBLE


def with_unit(type: Type, unit: Unit) -> Type:
    """The same type with all its ints and doubles under a unit."""
    if type.name in ("int", "double"):
        return Type(type.name, (), unit)
    return Type(type.name, tuple(with_unit(each, unit) for each in type.params), None, type.record)


def without_units(type: Type) -> Type:
    """The type as CEL alone sees it."""
    if type.unit is not None:
        return Type(type.name)
    if not type.params:
        return type
    return Type(type.name, tuple(map(without_units, type.params)), None, type.record)


def units_in(type: Type) -> frozenset[Unit | None]:
    """The units of all numbers in a type; None among them for a bare number."""
    if type.is_number:
        return frozenset((type.unit,))
    return frozenset(unit for each in type.params for unit in units_in(each))


def units_of(types: Iterable[Type]) -> frozenset[Unit | None]:
    """The units of all numbers in several types."""
    return frozenset(unit for each in types for unit in units_in(each))


_SHOWN: Final[Mapping[Unit | None, tuple[str, str]]] = MappingProxyType(
    {Unit.CPU: ("cores", "cpu('1')"), Unit.BYTES: ("mebibytes", "memory('1Mi')")}
)
"""In what a quantity is mostly told to a program, and what it is divided by for that."""


def shown_by(text: str, type: Type) -> str | None:
    """How to make a text of a quantity that counts in something other than what people expect; None where it does not."""
    if type.unit not in _SHOWN:
        return None
    name, whole = _SHOWN[type.unit]
    return (
        f"`string({text} / {whole})` is in {name}, `string(number({text}))` in {spoken_bare(type).removeprefix('in ')}; "
        f"`quantityText({text})` is for people"
    )


# --- what to say when operands do not fit -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand as a message speaks of it."""

    type: Type
    text: str
    start: int
    end: int
    literal: int | float | None = None


def clash(operator: str, left: Operand, right: Operand) -> tuple[str, str, str | None]:
    """Code, message and help for two numbers that do not go together under an operator such as `+`."""
    one, other = left.type, right.type
    if operator == "/" and one.unit is None:
        return (
            "KP204", f"`{left.text}` is a bare number and cannot be divided by `{right.text}`, which is {spoken(other)}",
            f"divide two quantities of one unit for a ratio, or `{right.text}` by the number",
        )  # fmt: skip
    if operator == "/" and other.unit is Unit.PERCENT:
        return "KP204", _both(left, right), f"divide by the ratio: `{left.text} / ratio({right.text})`"
    if operator == "*" and one.unit is not None and other.unit is not None:
        if one.unit is Unit.PERCENT and other.unit is Unit.PERCENT:
            return (
                "KP204",
                "two percentages cannot be multiplied",
                f"write `ratio({left.text}) * {right.text}`",
            )
        same = f"`{left.text}` and `{right.text}` are both {spoken(one)}, their product is no quantity"
        return (
            "KP204", same if one == other else _both(left, right),
            "multiply by a plain number, a ratio or a percentage; divide equal units for a ratio",
        )  # fmt: skip
    if one.unit is None or other.unit is None:
        bare, quantity = (left, right) if one.unit is None else (right, left)
        unit = quantity.type.unit
        assert unit is not None
        return (
            "KP213",
            f"`{bare.text}` is a bare number, `{quantity.text}` is {spoken(quantity.type)}",
            give_unit(bare, unit),
        )
    return "KP204", _both(left, right), _reconcile(operator, left, right)


def _both(left: Operand, right: Operand) -> str:
    return f"`{left.text}` is {spoken_bare(left.type)}, `{right.text}` is {spoken_bare(right.type)}"


_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))


def _reconcile(operator: str, left: Operand, right: Operand) -> str:
    units = {left.type.unit, right.type.unit}
    if Unit.AMOUNT in units:
        return "an amount goes only with amounts; name the resource's own fact, such as `node.capacity.cpu`"
    if Unit.PERCENT in units:
        percent, quantity = (left, right) if left.type.unit is Unit.PERCENT else (right, left)
        if operator in _COMPARISONS:
            return f"compare the share instead: `{quantity.text} / <total> {operator} {percent.text}`"
        return f"take the percentage of a quantity first: `{quantity.text} * {percent.text}`"
    return "only equal units go together; divide each side by its own total to work with shares"


def give_unit(bare: Operand, unit: Unit) -> str:
    """How to write a bare number with its unit."""
    number, text = bare.literal, bare.text
    if bare.type.name == "double" and number is None and unit is not Unit.PERCENT:
        return "a ratio becomes a quantity when a quantity is multiplied by it"
    if bare.type.name == "uint":
        text, number = f"int({text})", None
    if unit is Unit.CPU:
        whole = bare.type.name != "double"
        if number is not None:
            millis = f" or `millicores({text})`" if whole else ""
            return f'write `cpu("{text}")` for cores{millis}'
        return f"write `millicores({text})`"
    if unit is Unit.BYTES:
        return f'write `bytesOf({text})`, or a size such as `memory("1Gi")`'
    if unit is Unit.PERCENT:
        if isinstance(number, float) and 0 < number <= 1:
            return f"write `percent({number * 100:g})`"
        return f"write `percent({text})`"
    if unit is Unit.AMOUNT:
        return f"write `amount({text})`"
    if number is not None:
        return f'write `bandwidth("{text}")`'
    return "only bandwidth goes with bandwidth; `number()` drops a unit where that is meant"


def spelling(bare: Operand, unit: Unit | None) -> str | None:
    """The one way to write a literal number with its unit; None where there are several or none."""
    if not isinstance(bare.literal, int) or bare.type.name != "int":
        return None
    if unit is Unit.PERCENT:
        return f"percent({bare.text})"
    return f"amount({bare.text})" if unit is Unit.AMOUNT else None
