"""What a syntax tree refers to, before it has types: `variables.x`, `parameters.y`."""

from collections.abc import Iterator

from koordpolicy.language.cel import ast


def referenced(tree: ast.Expr, space: str) -> dict[str, ast.SelectExpr]:
    """The names selected from `space`, each with the place of its first mention."""
    found: dict[str, ast.SelectExpr] = {}
    for node in walk(tree):
        match node:
            case ast.SelectExpr(operand=ast.Ident(name=name), field=field) if name == space:
                found.setdefault(field, node)
    return found


def walk(tree: ast.Expr) -> Iterator[ast.Expr]:
    """Every node of a tree, parents first. The parser has bounded its depth and size."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(_children(node)))


def _children(node: ast.Expr) -> list[ast.Expr]:
    match node:
        case ast.SelectExpr(operand=operand):
            return [operand]
        case ast.IndexExpr(operand=operand, index=index):
            return [operand, index]
        case ast.CallExpr(target=target, args=args):
            return [*([target] if target is not None else []), *args]
        case ast.ListLiteral(elements=elements):
            return list(elements)
        case ast.MapLiteral(entries=entries):
            return [part for entry in entries for part in entry]
        case ast.Broken(parts=parts, mentions=mentions):
            return [*parts, *mentions]
        case _:
            return []
