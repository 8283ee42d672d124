"""Digests of expressions: equal for equal trees, in every process and on every machine."""

from collections.abc import Sequence
from hashlib import sha256

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import number


def digest_of(trees: Sequence[ir.Node]) -> str:
    """Hexadecimal digits of several expressions in their order."""
    table = number(trees)
    lines = [
        f"{type(node).__name__} {node.type} {below} {_own(node)}"
        for node, below in zip(table.nodes, table.operands, strict=True)
    ]
    return sha256("\n".join((*lines, str(table.roots))).encode("utf-8", "surrogatepass")).hexdigest()


def _own(node: ir.Node) -> str:
    """What a node says by itself, for the digest."""
    match node:
        case ir.Const(key=key):
            return key
        case ir.Call(overload=overload):
            return overload
        case ir.Field(path=path) | ir.OptField(path=path):
            return path
        case ir.Var(name=name, local=local):
            return f"{name} {local}"
        case ir.HasField(paths=paths):
            return " ".join(paths)
        case ir.Select(field=name, optional=optional, test=test):
            return f"{name} {optional} {test}"
        case ir.Index(optional=optional):
            return str(optional)
        case ir.OrElse(unwrap=unwrap):
            return str(unwrap)
        case ir.MakeList(optional=places) | ir.MakeMap(optional=places):
            return str(sorted(places))
        case ir.Comprehension(macro=macro, variables=variables):
            return f"{macro} {variables} {node.predicate is None} {node.transform is None}"
        case ir.Bind(name=name):
            return name
        case ir.OptMap(name=name, flat=flat):
            return f"{name} {flat}"
        case ir.Cast(permitted=permitted):
            return repr(permitted)
    return ""
