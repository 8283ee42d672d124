"""From the syntax tree back to text, in one canonical spelling."""

import re

from koordpolicy.language.cel import ast
from koordpolicy.language.cel.escapes import quote_bytes, quote_string
from koordpolicy.language.cel.syntax import KEYWORDS
from koordpolicy.language.cel.types import BOOL, BYTES_VALUE, NULL, STRING, UINT

_LEVELS = {
    "_||_": 1, "_&&_": 2,
    "_<_": 3, "_<=_": 3, "_>_": 3, "_>=_": 3, "_==_": 3, "_!=_": 3, "@in": 3,
    "_+_": 4, "_-_": 4, "_*_": 5, "_/_": 5, "_%_": 5,
}  # fmt: skip
_CONDITIONAL, _UNARY, _MEMBER = 0, 6, 7
_NUMBER = re.compile(r"\.?[0-9]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def unparse(node: ast.Expr) -> str:
    """Text that parses to an equal tree but for positions. Recursion is bounded by the tree's depth."""
    return _text(node, _CONDITIONAL)


def _text(node: ast.Expr, at_least: int) -> str:
    text, level = _spelt(node)
    return text if level >= at_least else f"({text})"


def _spelt(node: ast.Expr) -> tuple[str, int]:
    match node:
        case ast.Broken(parts=readable):
            return f"?({', '.join(map(unparse, readable))})", _MEMBER
        case ast.Literal():
            text = _literal(node)
            # A sign in front of a literal is bound like a prefix only where a sign stands before it.
            return text, _UNARY if text[0] == "-" else _MEMBER
        case ast.Ident(name=name, absolute=absolute):
            return ("." + name if absolute else name), _MEMBER
        case ast.SelectExpr(test=True):
            return f"has({_selection(node)})", _MEMBER
        case ast.SelectExpr():
            return _selection(node), _MEMBER
        case ast.IndexExpr(operand=operand, index=index, optional=optional):
            return f"{_text(operand, _MEMBER)}[{'?' if optional else ''}{unparse(index)}]", _MEMBER
        case ast.ListLiteral(elements=elements, optional=optional):
            parts = (f"{'?' if at in optional else ''}{unparse(each)}" for at, each in enumerate(elements))
            return f"[{', '.join(parts)}]", _MEMBER
        case ast.MapLiteral(entries=entries, optional=optional):
            parts = (
                f"{'?' if at in optional else ''}{unparse(key)}: {unparse(value)}"
                for at, (key, value) in enumerate(entries)
            )
            return f"{{{', '.join(parts)}}}", _MEMBER
        case ast.MessageLiteral(name=name, fields=fields):
            parts = (f"{_field(field)}: {unparse(value)}" for field, value in fields)
            return f"{unparse(name)}{{{', '.join(parts)}}}", _MEMBER
        case ast.CallExpr():
            return _call(node)
    raise TypeError(f"{type(node).__name__} is no syntax node")


def _selection(node: ast.SelectExpr) -> str:
    return f"{_text(node.operand, _MEMBER)}.{'?' if node.optional else ''}{_field(node.field)}"


def _field(name: str) -> str:
    return name if _NAME.fullmatch(name) and name not in KEYWORDS else f"`{name}`"


def _call(node: ast.CallExpr) -> tuple[str, int]:
    name, args = node.function, node.args
    if node.target is not None:
        return f"{_text(node.target, _MEMBER)}.{name}({', '.join(map(unparse, args))})", _MEMBER
    if name == "_?_:_":
        condition, then, otherwise = args
        text = f"{_text(condition, 1)} ? {_text(then, 1)} : {_text(otherwise, _CONDITIONAL)}"
        return text, _CONDITIONAL
    if name in ("-_", "!_"):
        operand = _text(args[0], _UNARY)
        # Without parentheses `-(1)` and `-(1).abs()` would read back as the literal -1.
        number = name == "-_" and _NUMBER.match(operand)
        return name[0] + (f"({operand})" if number else operand), _UNARY
    level = _LEVELS.get(name)
    if level is None:
        return f"{name}({', '.join(map(unparse, args))})", _MEMBER
    operator = " in " if name == "@in" else f" {name[1:-1]} "
    first = _text(args[0], level if level > 2 else level + 1)
    return operator.join((first, *(_text(arg, level + 1) for arg in args[1:]))), level


def _literal(node: ast.Literal) -> str:
    value = node.value
    if node.type == NULL:
        return "null"
    if node.type == BOOL:
        return "true" if value else "false"
    if node.type == STRING:
        return quote_string(str(value))
    if node.type == BYTES_VALUE and isinstance(value, bytes):
        return quote_bytes(value)
    return f"{value}u" if node.type == UINT else repr(value)
