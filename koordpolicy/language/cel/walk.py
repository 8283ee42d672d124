"""Going through the typed form: parts of a node, and the same node with other parts."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import Type


def children(node: ir.Node) -> tuple[ir.Node, ...]:
    """The subexpressions of a node in order of evaluation."""
    match node:
        case ir.Call(args=args) | ir.And(args=args) | ir.Or(args=args):
            return args
        case ir.Field(base=base) | ir.HasField(base=base) | ir.OptField(base=base):
            return (base,)
        case ir.Select(operand=operand):
            return (operand,)
        case ir.Index(operand=operand, index=index):
            return (operand, index)
        case ir.Cond(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case ir.MakeList(elements=elements):
            return elements
        case ir.MakeMap(entries=entries):
            return tuple(part for entry in entries for part in entry)
        case ir.Comprehension(range=walked, predicate=predicate, transform=transform):
            return tuple(part for part in (walked, predicate, transform) if part is not None)
        case ir.Bind(init=init, body=body):
            return (init, body)
        case ir.OptMap(operand=operand, body=body):
            return (operand, body)
    return ()


def nodes(root: ir.Node) -> Iterator[ir.Node]:
    """Every node of an expression, parents before children. Does not recurse."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def depth(root: ir.Node) -> int:
    """How many levels an expression has. Does not recurse."""
    level, count = [root], 0
    while level:
        count += 1
        level = [child for node in level for child in children(node)]
    return count


def with_children(node: ir.Node, change: Callable[[ir.Node], ir.Node]) -> ir.Node:
    """The node with `change` applied to each subexpression; the node itself when none differs."""
    match node:
        case ir.Call(args=args) | ir.And(args=args) | ir.Or(args=args):
            changed = tuple(map(change, args))
            return node if _same(args, changed) else replace(node, args=changed)
        case ir.Field(base=base) | ir.HasField(base=base) | ir.OptField(base=base):
            return replace(node, base=change(base))
        case ir.Select(operand=operand):
            return replace(node, operand=change(operand))
        case ir.Index(operand=operand, index=index):
            return replace(node, operand=change(operand), index=change(index))
        case ir.Cond():
            return replace(
                node,
                condition=change(node.condition),
                then=change(node.then),
                otherwise=change(node.otherwise),
            )
        case ir.MakeList(elements=elements):
            return replace(node, elements=tuple(map(change, elements)))
        case ir.MakeMap(entries=entries):
            return replace(node, entries=tuple((change(key), change(value)) for key, value in entries))
        case ir.Comprehension():
            return replace(
                node,
                range=change(node.range),
                predicate=None if node.predicate is None else change(node.predicate),
                transform=None if node.transform is None else change(node.transform),
            )
        case ir.Bind(init=init, body=body):
            return replace(node, init=change(init), body=change(body))
        case ir.OptMap(operand=operand, body=body):
            return replace(node, operand=change(operand), body=change(body))
    return node


def with_types(node: ir.Node, change: Callable[[Type], Type]) -> ir.Node:
    """The expression with every type replaced."""
    inner = with_children(node, lambda child: with_types(child, change))
    changed = change(node.type)
    return inner if changed == node.type else replace(inner, type=changed)


def renamed_locals(node: ir.Node, rename: Callable[[str], str]) -> ir.Node:
    """The expression with every local variable renamed, where it is bound and where it is used."""
    inner = with_children(node, lambda child: renamed_locals(child, rename))
    match inner:
        case ir.Var(name=name, local=True):
            return replace(inner, name=rename(name))
        case ir.Comprehension(variables=variables):
            return replace(inner, variables=tuple(map(rename, variables)))
        case ir.Bind(name=name) | ir.OptMap(name=name):
            return replace(inner, name=rename(name))
    return inner


def _same(one: tuple[ir.Node, ...], other: tuple[ir.Node, ...]) -> bool:
    return all(a is b for a, b in zip(one, other, strict=True))
