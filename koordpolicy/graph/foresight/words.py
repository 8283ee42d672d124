"""What is said of a failure that was foreseen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.diagnostics import Severity
from koordpolicy.graph.foresight.origins import of_one_text, own_offsets
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.failing import FailureCause, PossibleFailure
from koordpolicy.language.cel.failing.calls import OVER_TIME
from koordpolicy.language.cel.failing.times import MEASURED_TIMES
from koordpolicy.language.cel.wording import short

_SHOWN: Final = 60

CODES: Mapping[FailureCause, str] = {
    FailureCause.KEY: "KP215",
    FailureCause.FACT: "KP215",
    FailureCause.INDEX: "KP215",
    FailureCause.OPTIONAL: "KP215",
    FailureCause.ZERO: "KP216",
    FailureCause.ARGUMENT: "KP216",
    FailureCause.TYPE: "KP216",
    FailureCause.DUPLICATE: "KP216",
    FailureCause.OVERFLOW: "KP217",
}
"""The finding for each cause; what fails whenever it is reached is `ALWAYS` instead."""

ALWAYS: Final = "KP218"


@dataclass(frozen=True, slots=True)
class Words:
    """Code, message and advice of a finding."""

    code: str
    message: str
    help: str
    severity: Severity = Severity.WARNING


def words(failure: PossibleFailure, text: str, *, is_test: bool, only_created: bool) -> Words:
    """What to say of a failure in a text, placed nodes given.

    `is_test` where it stands in what gives true or false, `only_created` where the rule is asked of pods that are created alone.
    """
    shown = _shown(failure.node, text)
    if failure.certain:
        return Words(ALWAYS, f"`{shown}` can only fail", "correct the constant", Severity.ERROR)
    if _is_old_pod(failure):
        return Words(
            CODES[failure.cause],
            f"`{shown}` fails on CREATE, where no pod was there before",
            _without_old_pod(is_test=is_test, only_created=only_created),
        )
    reason, help = _reason(failure, text)
    return Words(CODES[failure.cause], f"`{shown}` fails {reason}", help)


def _is_old_pod(failure: PossibleFailure) -> bool:
    node = failure.node
    return (
        failure.cause is FailureCause.FACT
        and failure.atom[0] == "record"
        and isinstance(node, ir.Field)
        and node.base == ir.Var(node.base.type, "oldPod")
    )


def _without_old_pod(*, is_test: bool, only_created: bool) -> str:
    if only_created:
        return "the rule is asked on CREATE alone: write `pod`, or say `operations: [UPDATE]`"
    if is_test:
        return "say `operations: [UPDATE]`, or what holds then: `operation != 'UPDATE' || ...`"
    return "say `operations: [UPDATE]`, or what to say then: `operation == 'UPDATE' ? ... : ...`"


def _reason(failure: PossibleFailure, text: str) -> tuple[str, str]:
    """Why it fails, to follow "fails", and what helps."""
    node = failure.node
    match failure.cause:
        case FailureCause.KEY:
            operand = node.operand if isinstance(node, ir.Select | ir.Index) else node
            what = "label" if isinstance(operand, ir.Field) and operand.path == "labels" else "key"
            what = "annotation" if isinstance(operand, ir.Field) and operand.path == "annotations" else what
            return (
                f"where there is no such {what}",
                "say what holds without it: `m[?'k'].orValue('')`, or `'k' in m && ...`",
            )
        case FailureCause.FACT:
            if isinstance(node, ir.Field) and failure.atom[0] == "record":
                return "where there is no such object", "test first that it is there, with `has(...) && ...`"
            return "where it is not known", f"test first that it is there, with `has({_shown(node, text)})`"
        case FailureCause.INDEX:
            return (
                "where the list is shorter",
                "test the size first: `size(list) > n && ...`, or ask with `list[?n]`",
            )
        case FailureCause.OPTIONAL:
            return "where there is no value", "say what holds without one: `.orValue(...)`"
        case FailureCause.ZERO:
            divisor = node.args[1] if isinstance(node, ir.Call) else node
            named = f"`{_shown(divisor, text)}`" if of_one_text(node, divisor) else "the divisor"
            return (
                f"where {named} is 0",
                "test the divisor first: `d != 0 && ...`, `d == 0 ? 0 : n / d`",
            )
        case FailureCause.ARGUMENT:
            return _of_arguments(node)
        case FailureCause.TYPE:
            opened = "dyn(" in _written(node, text)
            return (
                "where the value is of another type",
                "leave `dyn()` out: without it, types are compared here"
                if opened
                else f"find out its type first: `type(x) == {_wanted(node)} && ...`",
            )
        case FailureCause.DUPLICATE:
            return "where two keys are the same", "make the keys of distinct elements: `list.distinct()`"
    return _of_overflow(node)


def _of_overflow(node: ir.Node) -> tuple[str, str]:
    if isinstance(node, ir.Call) and node.overload in OVER_TIME and node.type.name in MEASURED_TIMES:
        return (
            "where the times lie more than 292 years apart, or beyond the year 9999",
            "write a shorter duration, or compare the times themselves",
        )
    if isinstance(node, ir.Call) and node.args[0].type.name == "double" and node.type.name != "double":
        return (
            "where the number does not fit into 64 bits, or is none",
            "bound it first: `min(max(x, 0.0), 1e9)`, the root of `max(x, 0.0)`, a divisor that is not 0",
        )
    return "where the result does not fit into 64 bits", "bound the operands first, or count as `double(...)`"


_TAKES: Mapping[str, tuple[str, str]] = {
    "int": ("where the text is no whole number", "test it first: `x.matches('^[0-9]{1,9}$') && ...`"),
    "uint": ("where the text is no whole number", "test it first: `x.matches('^[0-9]{1,9}$') && ...`"),
    "double": ("where the text is no number", "test it first: `x.matches('^[0-9]{1,9}$') && ...`"),
    "bool": ("where the text is neither true nor false", "compare the text: `x == 'true'`"),
    "timestamp": ("where the text is no time", "match the text first, or compare it as it is"),
    "duration": ("where the text is no duration", "match the text first, or compare it as it is"),
    "quantity": ("where the text is no quantity", "test it first: `isQuantity(x) && ...`"),
    "cpu": ("where the text is no quantity", "compare facts, which are read already"),
    "memory": ("where the text is no quantity", "compare facts, which are read already"),
    "ip": ("where the text is no address", "test it first: `isIP(x) && ...`"),
    "cidr": ("where the text is no network", "test it first: `isCIDR(x) && ...`"),
    "url": ("where the text is no URL", "test it first: `isURL(x) && ...`"),
    **dict.fromkeys(
        ("min", "max", "math.least", "math.greatest", "percentile"),
        ("of an empty list", "test first that there is an element: `size(list) > 0 ? ... : ...`"),
    ),
}  # fmt: skip


def _of_arguments(node: ir.Node) -> tuple[str, str]:
    name = node.overload.partition("(")[0].removeprefix(".") if isinstance(node, ir.Call) else ""
    if name in _TAKES:
        return _TAKES[name]
    return f"of some arguments: `{name}` does not take all", "test the argument first"


def _wanted(node: ir.Node) -> str:
    return short(replace(node.type, unit=None, params=())) if isinstance(node, ir.Cast) else "string"


def _written(node: ir.Node, text: str) -> str:
    return text[slice(*own_offsets(node))]


def _shown(node: ir.Node, text: str) -> str:
    shown = " ".join(_written(node, text).split())
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
