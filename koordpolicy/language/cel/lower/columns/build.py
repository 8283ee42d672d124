"""How a column program is made: passes of the emitter, arrays placed, one generated module."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.defects import error_of
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import Numbering, facts_of, number, refs_of
from koordpolicy.language.cel.lower.columns import held, kernels, picked, row_cells, segments, strings
from koordpolicy.language.cel.lower.columns.emitter import Emitter
from koordpolicy.language.cel.lower.columns.kept import Kept
from koordpolicy.language.cel.lower.columns.memory import place
from koordpolicy.language.cel.lower.columns.nodes import emit_node
from koordpolicy.language.cel.lower.columns.parts import ROWS, Fallback
from koordpolicy.language.cel.lower.columns.program import Code, ColumnProgram
from koordpolicy.language.cel.lower.columns.row_cells import within
from koordpolicy.language.cel.lower.columns.row_outputs import Output, RowOutputs
from koordpolicy.language.cel.lower.columns.simplify import simplify
from koordpolicy.language.cel.lower.columns.symbols import (
    DTYPES,
    NoColumnForm,
    ThingVec,
    Vec,
    kind_of,
)
from koordpolicy.language.cel.lower.columns.writer import SPACE
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.meter import DEFAULT_BUDGET, Metered, charge
from koordpolicy.language.cel.values import Value
from koordpolicy.model.table.kinds import ABSENT

Array = NDArray[Any]


def compile_columns(
    outputs: Mapping[str, ir.Node] | ir.Node,
    table_root: str,
    roots: Sequence[str],
    budget: int = DEFAULT_BUDGET,
) -> ColumnProgram:
    """Compile one expression, or several with names that share what they have in common.

    `table_root` is the root that stands for a row of the table (`node`); `roots` are all roots. One
    row may spend `budget` units, all together so many times that (see `meter`).
    Raises ValueError for what the graph or the checker should have resolved before.
    """
    named = {"": outputs} if isinstance(outputs, ir.Node) else dict(outputs)
    if unresolved := refs_of(*named.values()):
        raise ValueError(f"unresolved references: {sorted(unresolved)}")
    trees = {name: simplify(tree) for name, tree in named.items()}
    others = tuple(name for name in roots if name != table_root)
    code = _generate(trees, table_root, others, budget, exact=True)
    general = partial(_generate, trees, table_root, others, budget, exact=False)
    kinds = tuple(Output(name, kind_of(tree.type), tree, trees[name]) for name, tree in named.items())
    rows = RowOutputs(kinds, (table_root, *others), budget)
    return ColumnProgram(table_root, others, code, general, rows, facts_of(*trees.values()), budget)


def _generate(
    trees: Mapping[str, ir.Node], table_root: str, roots: tuple[str, ...], budget: int, exact: bool
) -> Code:
    numbering = number(list(trees.values()))
    try:
        return _in_columns(numbering, trees, table_root, roots, budget, exact, {})
    except (RecursionError, SyntaxError, MemoryError) as defect:
        # Limits on levels are to prevent it; if they do not, row programs, which have no such limits, do all of it.
        error_of(defect)
        whole = {
            numbering.of(tree): Fallback("too large for columns", tree.start, tree.end)
            for tree in trees.values()
        }
        return _in_columns(numbering, trees, table_root, roots, budget, exact, whole)


def _in_columns(
    numbering: Numbering,
    trees: Mapping[str, ir.Node],
    table_root: str,
    roots: tuple[str, ...],
    budget: int,
    exact: bool,
    fallen: dict[int, Fallback],
) -> Code:
    while True:
        before = len(fallen)
        emitter = Emitter(
            emit_node=emit_node,
            numbering=numbering,
            table_root=table_root,
            roots=roots,
            fallen=fallen,
            exact=exact,
        )
        emitter.writer.line(f"{SPACE} 0 n")
        results = [_emit_output(emitter, tree) for tree in trees.values()]
        # What falls back is known to a pass only after it has met it; the next one plans for it. There
        # are two passes as a rule, and never more than nodes.
        if len(fallen) == before:
            return _assemble(emitter, [text for pair in results for text in pair], budget)


def _emit_output(emitter: Emitter, tree: ir.Node) -> tuple[str, str]:
    """Texts of an output's values and errors, as arrays of the caller's own."""
    try:
        symbol = emitter.emit(tree)
    except NoColumnForm as found:
        emitter.note_fallback(tree, found)
        return emitter.by_rows(tree)
    writer = emitter.writer
    match symbol:
        case Vec(kind=kind) if kind != kind_of(tree.type):
            return emitter.by_rows(tree)  # `dyn(node.name)` has a column, and no type that says so
        case Vec(space=None):
            value = f"np.full(n, {emitter.element_of(symbol)}, {DTYPES[symbol.kind]!r})"
            return value, emitter.errors_in(symbol, ROWS) or "None"
        case Vec():
            return emitter.own_arrays(symbol)
        case ThingVec():
            failed = f"np.ones(n, bool) if {symbol.errors} else None" if symbol.errors else "None"
            return writer.let("v", f"repeat({symbol.values}, n)"), writer.let("e", failed)
    return emitter.by_rows(tree)


_GLOBALS: Final[Mapping[str, object]] = {
    **{name: getattr(kernels, name) for name in dir(kernels) if not name.startswith("_")},
    **{name: getattr(segments, name) for name in dir(segments) if not name.startswith("_")},
    "count_picked": picked.count_picked,
    "pick_at": picked.pick_at,
    "np": np,
    "inf": float("inf"),
    "float64": np.float64,
    "int64": np.int64,
    "int32": np.int32,
    "ABSENT": ABSENT,
    "CelError": CelError,
    "Cell": row_cells.Cell,
    "attempt": row_cells.attempt,
    "charge": charge,
    "instant": held.instant,
    "is_among": strings.is_among,
}


def _repeat(value: Value, count: int) -> Array:
    """A value of any class, once a row."""
    result = np.empty(count, object)
    result[:] = [value] * count
    return result


def _assemble(emitter: Emitter, results: list[str], budget: int) -> Code:
    exports = ", ".join(emitter.exports) + ("," if emitter.exports else "")
    names = ", ".join(f"root{at}" for at in range(len(emitter.roots)))
    names += "," if names else ""
    answer = f"({', '.join(results)},)"
    body, slots = place(emitter.writer.lines, answer)
    lines = [
        "def prepare(own, shared):",
        *([f" ({names}) = own"] if names else []),
        *(" " * line.depth + line.text for line in emitter.prepare.lines),
        f" return ({exports})",
        "def run(table, strings, rows, n, own, prepared, memory, meter):",
        *([f" ({names}) = own"] if names else []),
        *([f" ({exports}) = prepared"] if exports else []),
        *body,
        f" return {answer}",
    ]
    scope: dict[str, Any] = {**_GLOBALS, "repeat": _repeat, **emitter.constants}
    slots_of = []
    for at, part in enumerate(emitter.kept):
        text = f"({', '.join(part.results)})"
        inner, needed = place(part.lines, text)
        slots_of.append(needed)
        lines += [
            f"def part{at}(table, strings, rows, n, memory, meter{part.given}):",
            *inner,
            f" return {text}",
        ]
    source = "\n".join(lines) + "\n"
    for at, fragment in enumerate(emitter.parts):
        scope[f"row{at}"] = within(compile_row(fragment.names, fragment.node, budget=budget), budget)
    exec(compile(source, "<koordpolicy column program>", "exec"), scope)  # noqa: S102 our own text only
    for at, (part, needed) in enumerate(zip(emitter.kept, slots_of, strict=True)):
        make_row = partial(_row_function, emitter.table_root, part.node, budget)
        scope[f"kept{at}"] = Kept(scope[f"part{at}"], needed, part.facts, part.whole, make_row)
    shared = compile_row(emitter.roots, emitter.shared, budget=budget) if emitter.shared else None
    return Code(
        scope["prepare"],
        scope["run"],
        shared,
        slots,
        emitter.uses_lists,
        tuple(emitter.used),
        source,
        len(emitter.numbering.nodes),
    )


def _row_function(table_root: str, node: ir.Node, budget: int) -> Metered:
    return within(compile_row((table_root,), node, budget=budget), budget)
