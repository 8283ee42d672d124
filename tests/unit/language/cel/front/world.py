"""A small world to check expressions in: two records of facts, a few names, the whole library."""

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import Problem, check, check_as
from koordpolicy.language.cel.environment import Environment, UserFunction
from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import SyntaxProblem
from koordpolicy.language.cel.types import (
    AMOUNT,
    BANDWIDTH,
    BOOL,
    CPU,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    MEMORY,
    PERCENT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    optional_of,
    record,
)
from koordpolicy.language.cel.walk import with_children
from koordpolicy.language.facts.table import EVERYWHERE, Fact, FactTable, Record


def _record(name: str, /, **facts: Type) -> Record:
    rows = (Fact(path.replace("__", "."), kind, "A fact.", EVERYWHERE) for path, kind in facts.items())
    return Record(name, "A record.", tuple(rows))


FACTS = FactTable(
    (
        _record(
            "node",
            name=STRING,
            labels=map_of(STRING, STRING),
            schedulable=BOOL,
            capacity__cpu=CPU,
            capacity__memory=MEMORY,
            capacity__pods=INT,
            usage__prod__cpu=CPU,
            usage__prod__memory=MEMORY,
            usage__total__cpu=CPU,
            network=BANDWIDTH,
            pressure=PERCENT,
            score=DOUBLE,
            seen=TIMESTAMP,
            age=DURATION,
            amounts=map_of(STRING, AMOUNT),
            pods=list_of(record("pod")),
            best=record("pod"),
        ),
        _record(
            "pod",
            name=STRING,
            band=STRING,
            priority=INT,
            request__cpu=CPU,
            request__memory=MEMORY,
            labels=map_of(STRING, STRING),
        ),
    )
)

_ESTIMATE = Function(
    "usage.estimated",
    "facts",
    "the use with a pod added",
    (Overload("usage.estimated(node,pod)", (record("node"), record("pod")), CPU, lambda node, pod: 0, True),),
)


def _double() -> UserFunction:
    bare = Environment(variables={}, functions=FUNCTIONS)
    text = "amounts.map(a, a * 2)"
    body = check(parse(text), bare.extended({"amounts": list_of(CPU)}), [], text)
    return UserFunction("twice", (("amounts", list_of(CPU)),), as_locals(body, frozenset(("amounts",))))


def as_locals(body: ir.Node, names: frozenset[str]) -> ir.Node:
    """The body of a function with its parameters as local variables."""
    if isinstance(body, ir.Var) and body.name in names:
        return ir.Var(body.type, body.name, True)
    return with_children(body, lambda child: as_locals(child, names))


POLICY = Environment(
    variables={
        "node": record("node"),
        "pod": record("pod"),
        "now": TIMESTAMP,
        "anything": DYN,
        "broken": ERROR,
    },
    functions={**FUNCTIONS, "usage.estimated": _ESTIMATE},
    facts=FACTS,
    refs={
        "variables": {"reserve": CPU, "share": PERCENT, "ratio": DOUBLE, "failed": ERROR},
        "parameters": {"reclaim": PERCENT, "limit": optional_of(CPU)},
        "constants": {},
    },
    user_functions={"twice": _double()},
    homogeneous_literals=True,
    literal_checks=True,
)
"""What an expression of a policy sees."""

PLAIN = Environment(
    variables={"x": DYN, "i": INT, "s": STRING, "l": list_of(INT), "m": map_of(STRING, INT), "a.b": INT},
    functions=FUNCTIONS,
)
"""What an expression of plain CEL sees."""


def checked(
    source: str, environment: Environment = POLICY, wanted: Type | None = None
) -> tuple[ir.Node | None, list[Problem]]:
    """The typed form of a text, None when it is not even an expression, and what was found."""
    problems: list[Problem] = []
    try:
        tree = parse(source, environment.macros)
    except SyntaxProblem as problem:
        return None, [
            Problem(
                problem.code,
                problem.message,
                problem.start,
                problem.end,
                problem.help,
                replacement=problem.replacement,
            )
        ]
    if wanted is None:
        return check(tree, environment, problems, source), problems
    return check_as(tree, wanted, environment, problems, source), problems
