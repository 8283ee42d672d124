"""Column programs: one or several expressions as one generated function over a table of nodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import facts_of, inline_binds, number, refs_of
from koordpolicy.language.cel.lower.columns import kernels, picked, row_cells, segments, strings
from koordpolicy.language.cel.lower.columns.emitter import ROWS, Emitter, Fallback
from koordpolicy.language.cel.lower.columns.kept import Kept
from koordpolicy.language.cel.lower.columns.memory import Memory, Slots, place
from koordpolicy.language.cel.lower.columns.symbols import (
    DTYPES,
    DURATION,
    STRING,
    TIMESTAMP,
    NoColumnForm,
    OptionalVec,
    ThingVec,
    Vec,
    kind_of,
)
from koordpolicy.language.cel.lower.columns.writer import SPACE
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.values import Duration, Timestamp, Value
from koordpolicy.model.table import NodeTable
from koordpolicy.model.table_kinds import ABSENT

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Output:
    """An expression of a program. `kind` is None for results that no array holds: then row
    programs give Python values.
    """

    name: str
    kind: str | None


class ColumnResult:
    """One output for all rows of a call.

    `values` has a number, bool or string number a row (see `texts`), nanoseconds for durations and
    points in time (Python ints where int64 is too narrow), Python values for anything else. `errors` marks the rows whose
    evaluation failed, whose value means nothing; None when there is none.
    """

    __slots__ = ("_detail", "_strings", "errors", "kind", "values")

    def __init__(
        self, kind: str | None, values: Array, errors: Array | None,
        strings: "strings.CallStrings", detail: Callable[[int], CelError | None],
    ) -> None:  # fmt: skip
        self.kind = kind
        self.values = values
        self.errors = errors
        self._strings = strings
        self._detail = detail

    def __len__(self) -> int:
        return len(self.values)

    def error(self, at: int) -> CelError | None:
        """What went wrong at an entry: evaluated again by the row program, on the facts of now."""
        return None if self.errors is None or not self.errors[at] else self._detail(at)

    def value(self, at: int) -> Value:
        """An entry as a run-time value. Raises the entry's CelError."""
        if self.errors is not None and self.errors[at]:
            raise self._detail(at) or CelError("the facts have changed since the evaluation")
        held = self.values[at]
        match self.kind:
            case "string":
                return self._strings.text(int(held))
            case "duration":
                return Duration(int(held))
            case "timestamp":
                return Timestamp(int(held))
            case None:
                value: Value = held
                return value
        plain: Value = held.item()
        return plain

    def texts(self) -> list[str]:
        """All strings of an output of kind string."""
        return [self._strings.text(int(code)) for code in self.values]


class ColumnProgram:
    """A compiled set of expressions.

    `roots` are the names that `call` needs values for, the table's own excluded. `fallback` lists what
    row programs evaluate, `source` is the generated text, `facts` the (record, path) pairs read.
    """

    __slots__ = (
        "_memory",
        "_outputs",
        "_prepare",
        "_rows",
        "_run",
        "_shared",
        "_single",
        "_slots",
        "_whole",
        "facts",
        "fallback",
        "roots",
        "source",
        "table_root",
    )

    def __init__(
        self, outputs: tuple[Output, ...], single: bool, table_root: str, roots: tuple[str, ...],
        code: "_Code", rows: Mapping[str, RowProgram], facts: frozenset[tuple[str, str]],
    ) -> None:  # fmt: skip
        self._outputs = outputs
        self._single = single
        self.table_root = table_root
        self.roots = tuple(name for name in roots if name != table_root)
        self._prepare = code.prepare
        self._run = code.run
        self._shared = code.shared
        self._whole = code.whole
        self._slots = code.slots
        self._memory: list[Memory] = []
        self._rows = rows
        self.fallback = code.fallback
        self.source = code.source
        self.facts = facts

    def call(self, table: NodeTable, values: Mapping[str, Value], rows: Array | None = None) -> ColumnResult:
        """The only output, for all rows or for those with the numbers `rows`, which row programs
        evaluate where lists are read.

        `values` has the other roots: flat records, or values such as `now`.
        """
        return self.call_all(table, values, rows)[self._outputs[0].name]

    def call_all(
        self, table: NodeTable, values: Mapping[str, Value], rows: Array | None = None
    ) -> dict[str, ColumnResult]:
        """All outputs by name."""
        own = [values[name] for name in self.roots]
        texts = strings.CallStrings(table.strings)
        count = len(table) if rows is None else len(rows)
        found = self._evaluate(table, texts, rows, count, own)
        return {
            output.name: ColumnResult(
                output.kind,
                _array(found[2 * at]),
                found[2 * at + 1],
                texts,
                self._detail(output, table, rows, own),
            )
            for at, output in enumerate(self._outputs)
        }

    def _evaluate(
        self, table: NodeTable, texts: "strings.CallStrings", rows: Array | None, count: int,
        own: list[Value],
    ) -> Sequence[Array | None]:  # fmt: skip
        """Values and errors of each output in turn."""
        if rows is not None and self._whole:
            return self._by_rows(table, texts, rows, count, own)
        try:
            with np.errstate(all="ignore"):
                shared = {} if self._shared is None else self._shared.call(*own)
                prepared = self._prepare(own, shared)
                # Taking the memory out of its place keeps a second thread from using it meanwhile.
                memory = self._memory.pop() if self._memory else Memory(self._slots)
                found: Sequence[Array | None] = self._run(table, texts, rows, count, own, prepared, memory)
                self._memory = [memory]
                return found
        except kernels.BeyondColumnsError:
            return self._by_rows(table, texts, rows, count, own)

    def _detail(
        self, output: Output, table: NodeTable, rows: Array | None, own: list[Value]
    ) -> Callable[[int], CelError | None]:
        def detail(at: int) -> CelError | None:
            row = at if rows is None else int(rows[at])
            try:
                self._rows[output.name].call(table.row(row), *own)
            except CelError as error:
                return error
            return None

        return detail

    def _by_rows(
        self, table: NodeTable, texts: "strings.CallStrings", rows: Array | None, count: int,
        own: list[Value],
    ) -> list[Array | None]:  # fmt: skip
        """Everything by row programs, when a value is beyond what columns hold."""
        found: list[Array | None] = []
        for output in self._outputs:
            values = np.zeros(count, object if output.kind in (None, TIMESTAMP) else DTYPES[output.kind])
            errors = np.zeros(count, np.bool_)
            for at in range(count):
                row = at if rows is None else int(rows[at])
                value, errors[at] = row_cells.attempt(self._rows[output.name].call, table.row(row), *own)
                if not errors[at]:
                    values[at] = _held(value, output.kind, texts)
            found += [values, errors if errors.any() else None]
        return found


def _array(values: Array | None) -> Array:
    assert values is not None
    return values


def _held(value: Any, kind: str | None, texts: "strings.CallStrings") -> object:
    if kind == STRING:
        return texts.code(value)
    return value.ns if kind in (DURATION, TIMESTAMP) else value


@dataclass(frozen=True, slots=True)
class _Code:
    """The generated functions. Those of a `whole` program read lists, and always of all rows."""

    prepare: Callable[..., Any]
    run: Callable[..., Any]
    shared: RowProgram | None
    slots: Slots
    whole: bool
    fallback: tuple[Fallback, ...]
    source: str


def compile_columns(
    outputs: Mapping[str, ir.Node] | ir.Node, table_root: str, roots: Sequence[str]
) -> ColumnProgram:
    """Compile one expression, or several with names that share what they have in common.

    `table_root` is the root that stands for a row of the table (`node`); `roots` are all roots.
    Raises ValueError for what the graph or the checker should have resolved before.
    """
    single = isinstance(outputs, ir.Node)
    named = {"": outputs} if isinstance(outputs, ir.Node) else dict(outputs)
    trees = {name: fold(inline_binds(tree)) for name, tree in named.items()}
    if unresolved := refs_of(*trees.values()):
        raise ValueError(f"unresolved references: {sorted(unresolved)}")
    others = tuple(name for name in roots if name != table_root)
    code = _generate(trees, table_root, others)
    rows = {name: compile_row((table_root, *others), tree) for name, tree in trees.items()}
    kinds = tuple(Output(name, kind_of(tree.type)) for name, tree in trees.items())
    return ColumnProgram(kinds, single, table_root, others, code, rows, facts_of(*trees.values()))


def _generate(trees: Mapping[str, ir.Node], table_root: str, roots: tuple[str, ...]) -> _Code:
    numbering = number(list(trees.values()))
    fallen: dict[int, Fallback] = {}
    while True:
        before = len(fallen)
        emitter = Emitter(numbering, table_root, roots, fallen)
        emitter.writer.line(f"{SPACE} 0 n")
        results = [_emit_output(emitter, tree) for tree in trees.values()]
        # What falls back is known to a pass only after it has met it; the next one plans for it. There
        # are two passes as a rule, and never more than nodes.
        if len(fallen) == before:
            return _assemble(emitter, [text for pair in results for text in pair])


def _emit_output(emitter: Emitter, tree: ir.Node) -> tuple[str, str]:
    """Texts of an output's values and errors, as fresh arrays or views of the table's."""
    try:
        symbol = emitter.emit(tree)
    except NoColumnForm as found:
        emitter.note_fallback(tree, found)
        return emitter.by_rows(tree)
    writer = emitter.writer
    match symbol:
        case Vec(space=None):
            value = f"np.full(n, {emitter.element_of(symbol)}, {DTYPES[symbol.kind]!r})"
            return value, emitter.errors_in(symbol, ROWS) or "None"
        case Vec():
            return emitter.own_arrays(symbol)
        case ThingVec():
            failed = f"np.ones(n, bool) if {symbol.errors} else None" if symbol.errors else "None"
            return writer.let("v", f"repeat({symbol.values}, n)"), writer.let("e", failed)
        case OptionalVec():
            return emitter.by_rows(tree)
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
    "is_among": strings.is_among,
}


def _repeat(value: Value, count: int) -> Array:
    """A value of any class, once a row."""
    result = np.empty(count, object)
    result[:] = [value] * count
    return result


def _assemble(emitter: Emitter, results: list[str]) -> _Code:
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
        "def run(table, strings, rows, n, own, prepared, memory):",
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
        lines += [f"def part{at}(table, strings, rows, n, memory):", *inner, f" return {text}"]
    source = "\n".join(lines) + "\n"
    for at, fragment in enumerate(emitter.parts):
        scope[f"row{at}"] = compile_row(fragment.names, fragment.node).call
    exec(compile(source, "<koordpolicy column program>", "exec"), scope)  # noqa: S102 our own text only
    for at, (part, needed) in enumerate(zip(emitter.kept, slots_of, strict=True)):
        make_row = partial(_row_function, emitter.table_root, part.node)
        scope[f"kept{at}"] = Kept(scope[f"part{at}"], needed, part.facts, part.whole, make_row)
    shared = compile_row(emitter.roots, emitter.shared) if emitter.shared else None
    return _Code(
        scope["prepare"], scope["run"], shared, slots, emitter.uses_lists, tuple(emitter.used), source
    )


def _row_function(table_root: str, node: ir.Node) -> Callable[..., object]:
    return compile_row((table_root,), node).call
