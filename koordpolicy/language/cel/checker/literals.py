"""Constant arguments, tried out while checking: a malformed duration is found now, not at run time."""

import re

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.defects import guarded
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.library.formatting import check_format

_TRIED = frozenset(
    (
        "duration", "timestamp", "cpu", "memory", "quantity", "percent", "url", "ip", "cidr", "int",
        "uint", "double", "bool", "millicores", "bytesOf",
    )
)  # fmt: skip
"""Conversions that are tried out when every argument is a constant."""

_PATTERNS = {
    "matches": 1, "find": 1, "findAll": 1, "regex.replace": 1, "regex.extract": 1, "regex.extractAll": 1,
}  # fmt: skip
"""Functions with a pattern, and its place among the arguments."""

_SAMPLES: dict[str, object] = {"string": "", "int": 1}
"""What stands in for the arguments beside a pattern: any will do, the pattern is what is tried."""


def check_literals(context: Context, call: ir.Call, function: Function, overload: Overload) -> ir.Node:
    """The call, or the error node when its constant arguments can only fail (KP209)."""
    if not context.environment.literal_checks or not call.args:
        return call
    if function.name == "format":
        return _checked_format(context, call)
    at = _PATTERNS.get(function.name)
    values: list[object]
    if at is not None and at < len(call.args):
        shown = call.args[at]
        if not isinstance(shown, ir.Const):
            return call
        values = [_SAMPLES.get(param.name) for param in overload.params]
        values[at] = shown.value
    elif function.name in _TRIED and all(isinstance(arg, ir.Const) for arg in call.args):
        shown = call.args[0]
        values = [arg.value for arg in call.args if isinstance(arg, ir.Const)]
    else:
        return call
    try:
        guarded(lambda: overload.implementation(*values))
    except CelError as error:
        help = _instead(function.name, shown) if at is None else _of_pattern(error.message)
        return context.fail("KP209", error.message, shown.start, shown.end, help)
    _warn_if_odd(context, function.name, shown)
    return call


def _of_pattern(problem: str) -> str:
    """What to do about a regular expression that is none."""
    return next((help for part, help in _PATTERN_HELP.items() if part in problem), _PATTERN_SYNTAX)


_PATTERN_SYNTAX = (
    "patterns are RE2's; a character that means something in them is written as itself after `\\\\`"
)
_PATTERN_HELP = {
    "missing ]": "close the class of characters with `]`, or write `\\\\[` for the bracket itself",
    "missing )": "close the group with `)`, or write `\\\\(` for the parenthesis itself",
    "unexpected )": "open the group with `(`, or write `\\\\)` for the parenthesis itself",
    "repetition": "put what is repeated before the `*`, `+`, `?` or `{n}`, or write `\\\\` before the sign itself",
    "perl operator": "RE2 cannot look ahead, look back or name groups so: write two tests joined by `&&`",
    "trailing \\": "write `\\\\\\\\` for the character itself: in a text each `\\` stands twice",
    "escape sequence": "leave the `\\` out, or write a class such as `[0-9]`",
    "class range": "write the lower end of the range first, such as `[a-z]`",
}
"""Help by a part of the problem."""


def _instead(name: str, argument: ir.Node) -> str | None:
    """What was most likely meant by a constant that a conversion refuses."""
    text = (
        argument.value.strip() if isinstance(argument, ir.Const) and isinstance(argument.value, str) else ""
    )
    if name == "memory" and (found := _BYTES.fullmatch(text)):
        unit = found[2][0].upper()
        return f"write `memory('{found[1]}{unit}i')`, or `{'k' if unit == 'K' else unit}` for powers of 1000"
    if name == "cpu" and (found := _CORES.fullmatch(text)):
        return f"cores have no unit: write `cpu('{found[1]}')`"
    if name == "duration" and (found := _DAYS.fullmatch(text)):
        return f"count days in hours: `duration('{int(found[1]) * 24}h')`"
    return None


_BYTES = re.compile(r"([0-9]{1,15})([kKmMgGtTpP])(?:[bB]|i[bB])")
_CORES = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(?:c|core|cores|cpu|cpus|vcpu)", re.IGNORECASE)
_DAYS = re.compile(r"([0-9]{1,5})d")


def _warn_if_odd(context: Context, name: str, argument: ir.Node) -> None:
    """KP209 as a warning for an amount that can be read, and is hardly meant."""
    value = argument.value if isinstance(argument, ir.Const) else None
    text = value.strip() if isinstance(value, str) else ""
    if name == "memory" and text.endswith("m") and text != "0m":
        message, help = f"`{text}` is in thousandths of a byte", f"write `memory('{text[:-1]}Mi')`"
    elif name == "cpu" and text.endswith("i"):
        message, help = f"`{text}` is an amount of memory", f"write `memory('{text}')`, or the cores"
    elif name == "percent" and isinstance(value, int | float) and 0 < value < 1:
        message, help = (
            f"`{value}` is less than one percent",
            f"write `percent({round(value * 100, 9):g})` for the share {value:g}",
        )
    else:
        return
    context.warn("KP209", message, argument.start, argument.end, help)


def _checked_format(context: Context, call: ir.Call) -> ir.Node:
    """A literal format string against the types of the values in a literal list."""
    template, values = call.args
    if not (
        isinstance(template, ir.Const) and isinstance(template.value, str) and isinstance(values, ir.MakeList)
    ):
        return call
    text = template.value
    try:
        guarded(lambda: check_format(text, [context.type(value) for value in values.elements]))
    except CelError as error:
        return context.fail("KP209", error.message, template.start, template.end)
    return call
