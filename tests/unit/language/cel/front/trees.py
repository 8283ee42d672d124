"""Random syntax trees."""

from dataclasses import fields, replace

from hypothesis import strategies as st

from koordpolicy.language.cel import ast
from koordpolicy.language.cel.syntax import KEYWORDS, RESERVED
from koordpolicy.language.cel.types import BOOL, BYTES_VALUE, DOUBLE, INT, NULL, STRING, UINT

_BINARY = ["_+_", "_-_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"]

names = st.from_regex(r"[a-z_][a-zA-Z0-9_]{0,5}", fullmatch=True).filter(
    lambda name: name not in KEYWORDS | RESERVED and name != "has"
)
fields_ = st.one_of(names, st.from_regex(r"[a-zA-Z0-9_./ -]{1,8}", fullmatch=True))

literals: st.SearchStrategy[ast.Expr] = st.one_of(
    st.builds(lambda value: ast.Literal(0, 0, INT, value), st.integers(-(2**63), 2**63 - 1)),
    st.builds(lambda value: ast.Literal(0, 0, UINT, value), st.integers(0, 2**64 - 1)),
    st.builds(
        lambda value: ast.Literal(0, 0, DOUBLE, value), st.floats(allow_nan=False, allow_infinity=False)
    ),
    st.builds(
        lambda value: ast.Literal(0, 0, STRING, value),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    ),
    st.builds(lambda value: ast.Literal(0, 0, BYTES_VALUE, value), st.binary(max_size=8)),
    st.builds(lambda value: ast.Literal(0, 0, BOOL, value), st.booleans()),
    st.just(ast.Literal(0, 0, NULL, None)),
)


def _compound(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    several = st.lists(inner, max_size=3).map(tuple)
    optional = st.frozensets(st.integers(0, 2))

    def within(marks: frozenset[int], parts: tuple[object, ...]) -> frozenset[int]:
        return frozenset(at for at in marks if at < len(parts))

    return st.one_of(
        st.builds(
            lambda args, name: ast.CallExpr(0, 0, name, args),
            st.tuples(inner, inner),
            st.sampled_from(_BINARY),
        ),
        # A chain within an equal chain would read back as one: the first operand joins it.
        st.builds(
            lambda args, name: ast.CallExpr(0, 0, name, args),
            st.lists(inner, min_size=2, max_size=4).map(tuple),
            st.sampled_from(["_&&_", "_||_"]),
        ),
        st.builds(lambda args: ast.CallExpr(0, 0, "_?_:_", args), st.tuples(inner, inner, inner)),
        st.builds(lambda arg, name: ast.CallExpr(0, 0, name, (arg,)), inner, st.sampled_from(["!_", "-_"])),
        st.builds(lambda args, name: ast.CallExpr(0, 0, name, args), several, names),
        st.builds(lambda target, args, name: ast.CallExpr(0, 0, name, args, target), inner, several, names),
        st.builds(
            lambda operand, field, marks: ast.SelectExpr(0, 0, operand, field, 0, *marks),
            inner,
            fields_,
            st.sampled_from([(False, False), (True, False), (False, True)]),
        ),
        st.builds(
            lambda operand, index, mark: ast.IndexExpr(0, 0, operand, index, mark),
            inner,
            inner,
            st.booleans(),
        ),
        st.builds(lambda parts, marks: ast.ListLiteral(0, 0, parts, within(marks, parts)), several, optional),
        st.builds(
            lambda parts, marks: ast.MapLiteral(0, 0, parts, within(marks, parts)),
            st.lists(st.tuples(inner, inner), max_size=3).map(tuple),
            optional,
        ),
        st.builds(
            lambda name, parts: ast.MessageLiteral(0, 0, ast.Ident(0, 0, name), parts),
            names,
            st.lists(st.tuples(names, inner), max_size=2).map(tuple),
        ),
    )


leaves = st.one_of(
    literals, st.builds(lambda name, absolute: ast.Ident(0, 0, name, absolute), names, st.booleans())
)
trees: st.SearchStrategy[ast.Expr] = st.recursive(leaves, _compound, max_leaves=25)


def bare(node: ast.Expr) -> ast.Expr:
    """The tree without positions, for comparison."""
    changed: dict[str, object] = {"start": 0, "end": 0}
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name in ("field_start", "name_start"):
            changed[field.name] = 0
        elif isinstance(value, ast.Expr):
            changed[field.name] = bare(value)
        elif isinstance(value, tuple):
            changed[field.name] = tuple(
                tuple(bare(part) if isinstance(part, ast.Expr) else part for part in each)
                if isinstance(each, tuple)
                else bare(each)
                for each in value
            )
    return replace(node, **changed)  # type: ignore[arg-type]
