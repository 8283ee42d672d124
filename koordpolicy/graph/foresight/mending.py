"""Edits of an expression that take a failure away: an optional with a default, or a guard before a test."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.graph.foresight.origins import of_one_text, own_offsets
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.failing import FailureCause, PossibleFailure
from koordpolicy.language.cel.failing.texts import TESTED
from koordpolicy.language.cel.wording import written_empty

_MACROS_OF_TESTS: Final = frozenset(("all", "exists", "exists_one", "filter", "existsOne"))
_OPERATORS: Final = re.compile(r"[\s+*/%?<>=&|-]")
"""What an expression has that is more than a call or an access."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """`text[start:end]` becomes `replacement`."""

    start: int
    end: int
    replacement: str
    shown: str = ""
    """What is written there, for people: the access with its default, or the guard."""


def mended(text: str, tree: ast.Expr, alike: Sequence[PossibleFailure], *, is_test: bool) -> Rewriting | None:
    """One edit that takes failures of one cause away, placed nodes given; None where there is none.

    `is_test` where the whole expression gives true or false.
    """
    edits: dict[tuple[int, int], str] = {}
    for failure in alike:
        found = _with_default(failure, text) or (_guarded(failure, text, tree) if is_test else None)
        if found is None:
            return None
        for one in found:
            edits.setdefault((one.start, one.end), one.replacement)
    if not edits:
        return None
    start, end = min(at for at, _ in edits), max(at for _, at in edits)
    parts, at = [], start
    for (first, last), replacement in sorted(edits.items()):
        if first < at:
            return None
        parts += [text[at:first], replacement]
        at = last
    replacement = "".join((*parts, text[at:end]))
    shown = _shown(next(iter(alike)), text, edits)
    # What is put in between two characters is told with one of them, so that there is something to replace.
    if start == end:
        return (
            Rewriting(start, end + 1, replacement + text[end : end + 1], shown) if end < len(text) else None
        )
    return Rewriting(start, end, replacement, shown)


def _shown(failure: PossibleFailure, text: str, edits: Mapping[tuple[int, int], str]) -> str:
    """The failing expression as it is written afterwards, or the guard that stands before it."""
    start, end = own_offsets(failure.node)
    inside = {place: new for place, new in edits.items() if start <= place[0] and place[1] <= end}
    guard = next((new for new in edits.values() if " && " in new), None)
    if guard is not None:
        return guard.removesuffix("(") + "..."
    parts, at = [], start
    for (first, last), new in sorted(inside.items()):
        parts += [text[at:first], new]
        at = last
    return "".join((*parts, text[at:end]))


def _with_default(failure: PossibleFailure, text: str) -> tuple[Rewriting, ...] | None:
    """The access as an optional, with the empty value of its type."""
    node, zero = failure.node, written_empty(failure.node.type)
    start, end = own_offsets(node)
    if zero is None or failure.cause not in (FailureCause.KEY, FailureCause.OPTIONAL):
        return None
    default = f".orValue({zero})"
    if failure.cause is FailureCause.OPTIONAL:
        head, dot, tail = text[start:end].rpartition(".value")
        return (Rewriting(start + len(head), end, default),) if dot and tail.strip(" ()") == "" else None
    if not isinstance(node, ir.Select | ir.Index):
        return None
    after = own_offsets(node.operand)[1]
    sign = "." if isinstance(node, ir.Select) and "[" not in text[after:end] else "["
    at = text.find(sign, after, end)
    if at < 0 or text[at + 1 : at + 2] == "?" or (start, end) == own_offsets(node.operand):
        return None
    return Rewriting(at + 1, at + 1, "?"), Rewriting(end, end, default)


def _guarded(failure: PossibleFailure, text: str, tree: ast.Expr) -> tuple[Rewriting, ...] | None:
    """A guard before the innermost test that the failure stands in."""
    start, end = own_offsets(failure.node)
    guard, test = _guard(failure, text), _test_around(tree, start, end)
    if guard is None or test is None:
        return None
    weak = isinstance(test, ast.CallExpr) and test.function == "_?_:_"
    return (
        (Rewriting(test.start, test.start, f"{guard} && ("), Rewriting(test.end, test.end, ")"))
        if weak
        else (Rewriting(test.start, test.start, f"{guard} && "),)
    )


def _test_around(tree: ast.Expr, start: int, end: int) -> ast.Expr | None:
    """The innermost expression around a place that is joined to others by `&&`, `||` or stands alone as a test."""
    found = tree
    while True:
        inner = next((part for part in _tests_of(found) if part.start <= start and end <= part.end), None)
        if inner is None:
            return found
        found = inner


def _tests_of(node: ast.Expr) -> tuple[ast.Expr, ...]:
    """The parts of a test that are tests themselves, or hold tests of their own."""
    match node:
        case ast.CallExpr(function="_&&_" | "_||_", args=args):
            return args
        case ast.CallExpr(function="_?_:_", args=args):
            return args
        case ast.CallExpr(function=name, target=target, args=args) if (
            target is not None and name in _MACROS_OF_TESTS
        ):
            return args[-1:]
    return ()


def _guard(failure: PossibleFailure, text: str) -> str | None:
    """What tells that there is no failure."""
    node = failure.node
    match failure.cause:
        case FailureCause.FACT:
            path = _text(node, text)
            return f"has({path})" if "." in path and "(" not in path else None
        case FailureCause.ZERO if isinstance(node, ir.Call):
            divisor, written = node.args[1], _text(node.args[1], text)
            if own_offsets(divisor) == own_offsets(node) or not of_one_text(node, divisor):
                return None
            zero = "0.0" if divisor.type.name == "double" and divisor.type.unit is None else "0"
            plain = _OPERATORS.search(written) is None
            return f"{written if plain else f'({written})'} != {zero}"
        case FailureCause.INDEX if isinstance(node, ir.Index):
            index = _text(node.index, text)
            return f"size({_text(node.operand, text)}) > {index}" if index.isdigit() else None
        case FailureCause.KEY if isinstance(node, ir.Index):
            return f"{_text(node.index, text)} in {_text(node.operand, text)}"
        case FailureCause.ARGUMENT if isinstance(node, ir.Call) and len(node.args) == 1:
            argument = _text(node.args[0], text)
            if node.overload in TESTED:
                return f"{TESTED[node.overload].partition('(')[0]}({argument})"
            if node.overload in ("int(string)", "uint(string)", "double(string)"):
                return f"{argument}.matches('^[0-9]{{1,9}}$')"
    return None


def _text(node: ir.Node, text: str) -> str:
    start, end = own_offsets(node)
    return text[start:end]
