"""Walks over the typed form: children, rebuilding, facts read, references, value numbers.

All walks are iterative and visit a shared node once, so that neither depth nor sharing (a variable
used by many rules) makes them slow.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.walk import CHILDREN, children, with_children


def walk(*roots: ir.Node) -> list[ir.Node]:
    """Every node once (by identity), operands before what uses them."""
    found: list[ir.Node] = []
    seen: set[int] = set()
    stack: list[ir.Node | None] = [*reversed(roots)]
    operands = CHILDREN.get
    # Compiling goes through every expression dozens of times: the loop asks as little as it can.
    while stack:
        node = stack.pop()
        if node is None:  # below it stands a node whose operands are done
            done = stack.pop()
            assert done is not None
            found.append(done)
        elif id(node) not in seen:
            seen.add(id(node))
            parts_of = operands(type(node))
            if parts_of is not None and (parts := parts_of(node)):
                stack += (node, None, *reversed(parts))
            else:
                found.append(node)
    return found


def rewrite(root: ir.Node, change: Callable[[ir.Node], ir.Node]) -> ir.Node:
    """Apply `change` to every node from the leaves up; operands are already changed."""
    done: dict[int, ir.Node] = {}
    for node in walk(root):
        done[id(node)] = change(node if type(node) not in CHILDREN else _rebuilt(node, done))
    return done[id(root)]


def refs_of(*roots: ir.Node) -> frozenset[tuple[str, str]]:
    """The references (space, name) that the graph still has to resolve."""
    return frozenset([(node.space, node.name) for node in walk(*roots) if isinstance(node, ir.Ref)])


def substitute(root: ir.Node, refs: Mapping[tuple[str, str], ir.Node]) -> ir.Node:
    """Replace references by what they stand for; those not in `refs` stay.

    The replacements are shared, not copied, and not searched for references themselves: resolve in
    order of dependency.
    """

    def change(node: ir.Node) -> ir.Node:
        return refs.get((node.space, node.name), node) if isinstance(node, ir.Ref) else node

    return rewrite(root, change)


def inline_binds(root: ir.Node) -> ir.Node:
    """Replace each bound name by its initial value. Back ends compute shared nodes once anyway."""
    if ir.Bind not in map(type, walk(root)):
        return root
    values: dict[str, ir.Node] = {}
    done: dict[int, ir.Node] = {}
    seen: set[int] = set()
    # Steps of a node: 0 visit, 1 remember a bind's value before its body is visited, 2 rebuild.
    stack: list[tuple[ir.Node, int]] = [(root, 0)]
    while stack:
        node, step = stack.pop()
        if step == 0:
            if id(node) in seen:
                continue
            seen.add(id(node))
            stack.append((node, 2))
            if isinstance(node, ir.Bind):
                stack += [(node.body, 0), (node, 1), (node.init, 0)]
            else:
                stack.extend((child, 0) for child in reversed(children(node)))
        elif isinstance(node, ir.Bind):
            if step == 1:
                values[node.name] = done[id(node.init)]
            else:
                done[id(node)] = done[id(node.body)]
        elif isinstance(node, ir.Var) and node.local and node.name in values:
            done[id(node)] = values[node.name]
        else:
            done[id(node)] = _rebuilt(node, done)
    return done[id(root)]


def _rebuilt(node: ir.Node, done: Mapping[int, ir.Node]) -> ir.Node:
    """The node over what its operands became; the node itself where none changed."""
    for child in children(node):
        if done[id(child)] is not child:
            break
    else:
        return node
    return with_children(node, lambda child: done[id(child)])


def facts_of(*roots: ir.Node) -> frozenset[tuple[str, str]]:
    """The facts read, as (record, path): `("node", "usage.prod.cpu")`.

    The record is the root's name, or for an element of a list of records (`node.pods`) the name of
    its structure. A root read as a whole (`now`, an argument of a function) has the path "".
    """
    return facts_among(walk(*roots), roots)


def facts_among(nodes: Iterable[ir.Node], roots: Sequence[ir.Node]) -> frozenset[tuple[str, str]]:
    """As `facts_of`, of expressions whose nodes are at hand one by one (equal ones at least once)."""
    found: set[tuple[str, str]] = set()
    for node in nodes:
        if isinstance(node, (ir.Field, ir.OptField)):
            found.add((_record_name(node.base), node.path))
        elif isinstance(node, ir.HasField):
            found.update((_record_name(node.base), path) for path in node.paths)
        else:
            found.update((part.name, "") for part in children(node) if _is_root(part))
    found.update((part.name, "") for part in roots if _is_root(part))
    return frozenset(found)


def _is_root(node: ir.Node) -> TypeGuard[ir.Var]:
    return isinstance(node, ir.Var) and not node.local


def _record_name(base: ir.Node) -> str:
    if isinstance(base, ir.Var) and not base.local:
        return base.name
    kind = base.type.params[0] if base.type.name == "optional_type" and base.type.params else base.type
    return kind.record or kind.name


@dataclass(slots=True)
class Numbering:
    """Value numbers: equal nodes, wherever they stand, have one number and one entry.

    Lists are indexed by number; operands have lower numbers than what uses them. `uses` counts the
    distinct places that use a node, `height` the levels below it, `weight` its size as a tree (capped),
    `free` the local variables that it needs from outside, `numbers` leads from a node's identity to its
    number.
    """

    nodes: list[ir.Node]
    operands: list[tuple[int, ...]]
    uses: list[int]
    height: list[int]
    weight: list[int]
    free: list[frozenset[str]]
    roots: list[int]
    numbers: dict[int, int]

    def of(self, node: ir.Node) -> int:
        """The number of a node that was part of the numbered trees."""
        return self.numbers[id(node)]


_WEIGHT_CAP = 1_000_000


def number(roots: Sequence[ir.Node]) -> Numbering:
    """Give equal nodes equal numbers, without ever comparing whole trees."""
    table = Numbering([], [], [], [], [], [], [], {})
    known: dict[object, int] = {}
    kinds: dict[int, int] = {}  # a type's identity -> number of its value: hashing a type is slow
    values: dict[Type, int] = {}
    for node in walk(*roots):
        below = tuple([table.numbers[id(child)] for child in children(node)])
        kind = kinds.get(id(node.type))
        if kind is None:
            kind = kinds[id(node.type)] = values.setdefault(node.type, len(values))
        key = (type(node), kind, below, own_parts(node))
        at = known.get(key)
        if at is None:
            at = known[key] = len(table.nodes)
            table.nodes.append(node)
            table.operands.append(below)
            table.uses.append(0)
            table.height.append(1 + max((table.height[child] for child in below), default=0))
            table.weight.append(
                min(_WEIGHT_CAP, _own_weight(node) + sum(table.weight[child] for child in below))
            )
            table.free.append(_free_names(node, [table.free[child] for child in below]))
            for child in below:
                table.uses[child] += 1
        table.numbers[id(node)] = at
    for root in roots:
        table.roots.append(table.numbers[id(root)])
        table.uses[table.roots[-1]] += 1
    return table


def own_parts(node: ir.Node) -> object:
    """What tells a node from others of its class beside its type and operands (and their grouping)."""
    match node:
        case ir.Call():
            return node.overload
        case ir.Const():
            return node.key or id(node)
        case ir.Field() | ir.OptField():
            return node.path
        case ir.Var():
            return node.name, node.local
        case ir.And() | ir.Or() | ir.Cond() | ir.Holds():
            return None  # nothing but operands
        case ir.Cast():
            return node.permitted
        case ir.HasField():
            return node.paths
        case ir.Select():
            return node.field, node.optional, node.test
        case ir.Index():
            return node.optional
        case ir.OrElse():
            return node.unwrap
        case ir.MakeList() | ir.MakeMap():
            return node.optional
        case ir.Comprehension():
            return node.macro, node.variables, node.predicate is None, node.transform is None
        case ir.Bind():
            return node.name
        case ir.OptMap():
            return node.name, node.flat
        case ir.Ref():
            return node.space, node.name
    raise TypeError(f"{type(node).__name__} is no node that can be numbered")


def _own_weight(node: ir.Node) -> int:
    match node:
        case ir.Const() | ir.Var() | ir.Ref():
            return 0
        case ir.Comprehension():
            return 20
        case ir.Call() if not node.overload.startswith(("_", "-", "!")):
            return 3
    return 1


def bound_names(node: ir.Node) -> tuple[str, ...]:
    """The local variables that a node itself introduces for some of its operands."""
    if isinstance(node, ir.Comprehension):
        return node.variables
    if isinstance(node, (ir.Bind, ir.OptMap)):
        return (node.name,)
    return ()


_NO_NAMES: frozenset[str] = frozenset()


def _free_names(node: ir.Node, below: Sequence[frozenset[str]]) -> frozenset[str]:
    if isinstance(node, ir.Var):
        return frozenset((node.name,)) if node.local else _NO_NAMES
    if not any(below):
        return _NO_NAMES
    bound = bound_names(node)
    if not bound:
        return _NO_NAMES.union(*below)
    # The first operand (range, init, operand) stands outside the names' reach.
    return below[0].union(*(names.difference(bound) for names in below[1:]))
