"""Row programs: an expression as one generated Python function of its roots.

The function takes each root's value by position (a record is one flat dict from path to value) and
gives the value or raises `CelError`. Several outputs compile into one function that gives a dict of
values, in which an output that failed stands as its `CelError`; what they have in common is computed
once. No user text is evaluated: names in the generated code are made here, constants are literals or
looked up.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import CodeType
from typing import Any, Final, TypeAlias

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.defects import error_of
from koordpolicy.language.cel.errors import CelError, EvaluationError, MissingFact, NoSuchOverload
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.ir_walk import facts_among, inline_binds, number
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower import nodes, runtime
from koordpolicy.language.cel.lower.body import Body, Program
from koordpolicy.language.cel.lower.operators import GLOBALS
from koordpolicy.language.cel.lower.source import Block, one_line
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.language.cel.unheld import SEEN

_FILE: Final = "<koordpolicy row program>"
_FUNCTION = re.compile(r"^(?=def )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RowProgram:
    """A compiled expression.

    `call(*roots)` takes the values of `roots` by position; `source` is the generated text; `facts` are
    the (record, path) pairs that it may read. What is `metered` may be given a meter behind the roots, which many
    evaluations then share; `price` is what one of them costs beside what it charges.
    """

    call: Callable[..., Any]
    roots: tuple[str, ...]
    source: str
    facts: frozenset[tuple[str, str]]
    metered: bool
    price: int
    constants: Mapping[str, tuple[object, Any]] = field(default_factory=dict, repr=False)
    """What the text finds by names that begin with K: how it is made, where that is known, and what it is."""


def compile_row(
    roots: Sequence[str],
    outputs: Mapping[str, ir.Node] | ir.Node,
    functions: Mapping[str, Function] = FUNCTIONS,
    budget: int = DEFAULT_BUDGET,
) -> RowProgram:
    """Compile one expression, or several with names, of which one evaluation may spend `budget` units.

    Raises ValueError for what the graph or the checker should have resolved before: a `Ref`, a root
    that is not among `roots`, an overload that is not in the table.
    """
    single = isinstance(outputs, ir.Node)
    named = {"": outputs} if isinstance(outputs, ir.Node) else dict(outputs)
    program, facts = _begun(roots, list(named.values()), functions)
    module = Block()
    names = program.root_names
    _write_main(program, module, names, partial(_write_results, names=None if single else list(named)))
    scope, source = _finished(program, module, budget)
    metered = any(program.metered[n] for n in program.numbering.roots)
    keys = program.constant_keys
    constants = {name: (keys.get(name), value) for name, value in program.constants.items()}
    return RowProgram(scope["main"], tuple(roots), source, facts, metered, program.price(), constants)


def load_row(
    roots: tuple[str, ...],
    source: str,
    facts: frozenset[tuple[str, str]],
    metered: bool,
    price: int,
    constants: Mapping[str, tuple[object, Any]],
    budget: int,
) -> RowProgram:
    """A program from its text, as `compile_row` made it in a process of the same code."""
    values = {name: value for name, (_, value) in constants.items()}
    scope = _scope(source, values, _fact_names(facts), budget)
    return RowProgram(scope["main"], roots, source, facts, metered, price, constants)


Bind: TypeAlias = "Callable[..., Callable[[Any], tuple[Any, ...]]]"
"""Takes the values of all roots but the first; gives the function of the first root's value."""


def compile_bound(roots: Sequence[str], outputs: Sequence[ir.Node], budget: int = DEFAULT_BUDGET) -> Bind:
    """Compile expressions to be asked of many values of the first root, with those of the others given once.

    The answers are in the form that columns hold: nanoseconds for durations and points in time. An output that
    failed stands as its `CelError`. Raises ValueError as `compile_row` does.
    """
    program, _ = _begun(roots, outputs, FUNCTIONS)
    first, *others = program.root_names
    module, function = Block(), Block()
    module.line(f"def bind({', '.join(others)}):")
    _write_main(program, function, [first], _write_held)
    function.line("return main")
    module.nest(function)
    bind: Bind = _finished(program, module, budget)[0]["bind"]
    return bind


def _begun(
    roots: Sequence[str], trees: Sequence[ir.Node], functions: Mapping[str, Function]
) -> tuple[Program, frozenset[tuple[str, str]]]:
    """A program of numbered nodes, and the facts that they read."""
    numbering = number(trees)
    if any(isinstance(node, ir.Bind) for node in numbering.nodes):
        trees = [inline_binds(tree) for tree in trees]
        numbering = number(trees)
    if unresolved := [node.name for node in numbering.nodes if isinstance(node, ir.Ref)]:
        raise ValueError(f"unresolved references: {', '.join(sorted(unresolved))}")
    facts = facts_among(numbering.nodes, trees)
    return Program(tuple(roots), numbering, functions, _fact_names(facts), nodes.compute), facts


def _finished(program: Program, module: Block, budget: int) -> tuple[dict[str, Any], str]:
    """The generated module with all its parts, and its text."""
    program.write_parts(module)
    source = "\n".join(module.lines()) + "\n"
    return _scope(source, program.constants, program.fact_names, budget), source


def _scope(
    source: str, constants: Mapping[str, Any], fact_names: Mapping[str, str], budget: int
) -> dict[str, Any]:
    """The functions of a generated module, by name, with all that they find by name."""
    told = _errors(fact_names)
    scope: dict[str, Any] = {
        **GLOBALS,
        **constants,
        "told": told,
        "as_value": _as_value,
        "absorbed": _absorbing(told),
        "unheld": _unheld(told),
        "BUDGET": budget,
        "UNSET": _Unset(),
    }
    for code in _codes(source):
        exec(code, scope)  # noqa: S102 - the text was generated here, from nodes and names of our own
    return scope


def _codes(source: str) -> Iterator[CodeType]:
    """One function after another: Python's own compiler lets no other thread run until it is done."""
    for text in _FUNCTION.split(source):
        yield _code(text)


@lru_cache(maxsize=4096)
def _code(text: str) -> CodeType:
    """The code of one function: most are the same in the next revision of a decision with many rules."""
    return compile(text, _FILE, "exec")


class _Unset:
    """Marks a shared value that has not been needed yet."""

    __slots__ = ()


def _write_main(
    program: Program, module: Block, parameters: Sequence[str], write: Callable[[Body], None]
) -> None:
    body = Body(program, program.roots, frozenset(), metered=False)
    write(body)
    metered = any(program.metered[n] for n in program.numbering.roots)
    module.line(f"def main({', '.join([*parameters, 'meter=None'] if metered else parameters)}):")
    function = Block()
    if metered:
        function.line("if meter is None:")
        function.nest(one_line("meter = [BUDGET, BUDGET]"))
    guarded = body.finish()
    function.line("try:")
    function.nest(guarded)
    function.line("except Exception as error:")
    function.nest(one_line("raise told(error) from None"))
    module.nest(function)


def _write_results(body: Body, names: Sequence[str] | None) -> None:
    """The only value, or a dict of values and errors."""
    numbers = body.numbering.roots
    if names is None:
        body.block.line(f"return {body.text(numbers[0])}")
        return
    results = [_write_output(body, body.text, n) for n in numbers]
    pairs = ", ".join(f"{name!r}: {result}" for name, result in zip(names, results, strict=True))
    body.block.line(f"return {{{pairs}}}")


def _write_held(body: Body) -> None:
    """A tuple of values in the form that columns hold, and errors."""
    results = [_write_output(body, partial(nodes.held, body), n) for n in body.numbering.roots]
    body.block.line(f"return ({''.join(f'{result}, ' for result in results)})")


def _write_output(body: Body, text: Callable[[int], str], n: int) -> str:
    result = body.fresh()
    with body.branch() as inner:
        body.block.line(f"{result} = {text(n)}")
    body.block.line("try:")
    body.block.nest(inner)
    body.block.line("except Exception as error:")
    body.block.nest(one_line(f"{result} = as_value(told(error))"))
    return result


def _fact_names(facts: frozenset[tuple[str, str]]) -> dict[str, str]:
    """From a path to the name that messages use: one path of two records is named by both."""
    names: dict[str, list[str]] = {}
    for record, path in sorted(facts):
        if path:
            names.setdefault(path, []).append(f"{record}.{path}")
    return {path: " or ".join(full) for path, full in names.items()}


def _errors(names: Mapping[str, str]) -> Callable[[Exception], CelError]:
    """The function that turns any exception of generated code into the error that it means."""

    def told(error: Exception) -> CelError:
        if isinstance(error, CelError):
            return error
        if not _is_ours(error):
            return error_of(error)  # of a function that was called: a defect
        if isinstance(error, KeyError):
            key = error.args[0] if error.args else None
            if isinstance(key, str) and key in names:
                return MissingFact(names[key])
            return runtime.no_such_key(key)
        if isinstance(error, (TypeError, AttributeError)):
            return NoSuchOverload(f"a fact is not of its declared type: {error}")
        return error_of(error)

    return told


def _as_value(error: CelError) -> CelError:
    """An error that is given, not raised, without the frames that it came through.

    They hold what the caller works on, and arrays of objects, in which such errors may stand, keep cycles alive.
    """
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def _absorbing(
    told: Callable[[Exception], CelError],
) -> Callable[[Exception, EvaluationError | None], EvaluationError]:
    """The same for an operand of logic, whose error another may absorb, with what failed before. A limit ends all."""

    def absorbed(error: Exception, before: EvaluationError | None) -> EvaluationError:
        found = told(error)
        if isinstance(found, EvaluationError):
            return before or found
        raise found

    return absorbed


def _unheld(told: Callable[[Exception], CelError]) -> Callable[[Exception, str], None]:
    """The same for a condition, whose failure is counted. A limit ends all."""

    def unheld(error: Exception, clause: str) -> None:
        found = told(error)
        if not isinstance(found, EvaluationError):
            raise found
        if clause:
            SEEN.add(clause, error=str(found))

    return unheld


def _is_ours(error: Exception) -> bool:
    """Whether an exception comes from generated code itself, a missing key as a rule, and not from what it called."""
    trace = error.__traceback__
    if trace is None:
        return False
    inner = trace.tb_next
    if inner is None:
        return True  # the frame that caught it raised it: a missing fact, which is not rare
    while inner.tb_next is not None:
        inner = inner.tb_next
    return inner.tb_frame.f_code.co_filename == _FILE
