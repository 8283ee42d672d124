"""What a syntax tree refers to, before it has types: `variables.x`, `parameters.y`."""

from collections.abc import Iterator

from koordpolicy.language.cel import ast


def referenced(tree: ast.Node, space: str) -> dict[str, ast.Select]:
    """The names selected from `space`, each with the place of its first mention."""
    found: dict[str, ast.Select] = {}
    for node in walk(tree):
        match node:
            case ast.Select(operand=ast.Ident(name=name), field=field) if name == space:
                found.setdefault(field, node)
    return found


def walk(tree: ast.Node) -> Iterator[ast.Node]:
    """Every node of a tree, parents first. The parser has bounded its depth and size."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(_children(node)))


def _children(node: ast.Node) -> list[ast.Node]:
    match node:
        case ast.Select(operand=operand):
            return [operand]
        case ast.Index(operand=operand, index=index):
            return [operand, index]
        case ast.Call(target=target, args=args):
            return [*([target] if target is not None else []), *args]
        case ast.ListLiteral(elements=elements):
            return list(elements)
        case ast.MapLiteral(entries=entries):
            return [part for entry in entries for part in entry]
        case _:
            return []
