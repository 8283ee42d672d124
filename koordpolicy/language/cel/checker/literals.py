"""Constant arguments, tried out while checking: a malformed duration is found now, not at run time."""

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
        return context.fail("KP209", error.message, shown.start, shown.end)
    return call


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
