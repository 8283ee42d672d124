"""Whether an invariant holds of a graph: its decisions in place of their names, then the question to all inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from koordpolicy.graph.analysis.facts import bounds_of, fact_at
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.invariants import BEFORE, DECISIONS, RAISED, Invariant
from koordpolicy.graph.proof.digest import digest_of
from koordpolicy.graph.proof.goal import Fails, Valued
from koordpolicy.graph.proof.inputs import inputs
from koordpolicy.graph.proof.solve import Named, decide
from koordpolicy.graph.proof.verdict import ProofBudget, Proved, Records, Verdict
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.failing.ranges import AMOUNT
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import refs_of, rewrite, substitute, walk
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import BOOL, STRING
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.facts import ROOTS

_STEPS: Final[Mapping[str, int]] = {"int": 1_000, "double": 1, "google.protobuf.Duration": 10**9}
"""By how much a fact is raised in an example unless something else is asked for."""


@dataclass(frozen=True)
class Question:
    """An invariant as an expression of facts alone. `told` are its decisions by the names they have there."""

    invariant: Invariant
    condition: ir.Node
    given: ir.Node | None
    told: Mapping[str, ir.Node]
    roots: tuple[str, ...]

    def valued(self, written: ir.Node, whole: ir.Node) -> Valued:
        """When it counts that `written` fails, which is `whole` with decisions put in: where those that it reads have values.

        Of amounts beyond what clusters have, no overflow counts: it is foreseen nowhere.
        """
        parts = [value for name, value in self.told.items() if tuple(name.split(".", 1)) in refs_of(written)]
        return Valued.made(self.roots, parts, _usual(whole))

    @property
    def key(self) -> str:
        """A digest of what is asked: equal questions have equal answers."""
        trees = [self.condition, *([] if self.given is None else [self.given]), *self.told.values()]
        return digest_of(trees)

    def values(self, records: Records) -> dict[str, object]:
        """What each decision comes to on an input; a `CelError` where it has no answer."""
        made = compile_row(self.roots, self.told).call(*(records.get(root, {}) for root in self.roots))
        assert isinstance(made, dict)
        return made


def question(graph: RuleGraph, invariant: Invariant, before: RuleGraph | None = None) -> Question:
    """The invariant over the decisions of a graph; `before` is the earlier revision where it speaks of two."""
    told: dict[str, ir.Node] = {}
    refs = dict(graph.constants)
    for name, key in invariant.decisions.items():
        value = _value(graph, str(key))
        told[f"{DECISIONS}.{name}"] = refs[DECISIONS, name] = value
        if invariant.raised:
            told[f"{RAISED}.{name}"] = refs[RAISED, name] = _raised(value, invariant.raised)
        if invariant.compares:
            assert before is not None
            told[f"{BEFORE}.{name}"] = refs[BEFORE, name] = _value(before, str(key))
    condition = fold(substitute(invariant.require, refs))
    given = [] if invariant.where is None else [fold(substitute(invariant.where, refs))]
    given += [_higher(root, path) for root, path in invariant.raised]
    whole = None if not given else given[0] if len(given) == 1 else ir.And(BOOL, tuple(given))
    roots = (*ROOTS, *dict.fromkeys(f"{RAISED}.{root}" for root, _ in invariant.raised))
    return Question(invariant, condition, whole, told, roots)


def prove(asked: Question, named: Named, budget: ProofBudget) -> Verdict:
    """Whether the invariant holds on every input: an input that violates it, a proof, or why there is neither."""
    program = compile_row(asked.roots, asked.condition)
    test = None if asked.given is None else compile_row(asked.roots, asked.given)
    prepare = _preparing(asked.invariant.raised) if asked.invariant.raised else None
    invariant = asked.invariant
    valued = asked.valued(invariant.require, asked.condition)
    where = (
        None if invariant.where is None or asked.given is None else asked.valued(invariant.where, asked.given)
    )
    goal = Fails(asked.condition, program, asked.given, test, prepare, valued, where)
    return decide(goal, named, budget)


def failure(asked: Question, records: Records) -> tuple[str, str] | None:
    """What of an invariant has no value on an input, `where` or `require`, and of what it fails; None where both have one."""
    for name, whole in (("where", asked.given), ("require", asked.condition)):
        if whole is not None:
            try:
                compile_row(asked.roots, whole).call(*(records.get(root, {}) for root in asked.roots))
            except CelError as error:
                return name, error.message
    return None


def is_asked_of_nothing(asked: Question, named: Named, budget: ProofBudget) -> bool:
    """Whether no input that there can be meets what is given, so that whatever is required is proved."""
    if asked.given is None:
        return False
    unmet = ir.Call(BOOL, "!_(bool)", (asked.given,))
    program = compile_row(asked.roots, unmet)
    prepare = _preparing(asked.invariant.raised) if asked.invariant.raised else None
    goal = Fails(unmet, program, prepare=prepare)
    return isinstance(decide(goal, named, budget, simple=False), Proved)


def unanswered(asked: Question) -> tuple[str, ...]:
    """The decisions, by the names that the invariant gives them, that have no answer on any everyday input."""
    program = compile_row(asked.roots, asked.told)
    left = dict.fromkeys(asked.told)
    for one in islice(inputs(*asked.told.values()), _MOST_TRIED):
        made = program.call(*(one.records.get(root, {}) for root in asked.roots))
        assert isinstance(made, dict)
        for name, value in made.items():
            if not isinstance(value, CelError):
                left.pop(name, None)
        if not left:
            break
    return tuple(name.partition(".")[2] for name in left if name.startswith(f"{DECISIONS}."))


_MOST_TRIED: Final = 400


def _usual(whole: ir.Node) -> ir.Node:
    """That all numbers which an expression reads from records are what clusters have."""
    parts: list[ir.Node] = []
    for part in dict.fromkeys(walk(whole)):
        if (
            not isinstance(part, ir.Field)
            or not isinstance(part.base, ir.Var)
            or part.base.local
            or part.type.name != "int"
        ):
            continue
        for operator, end in (("_<=_", AMOUNT[1]), ("_>=_", AMOUNT[0])):
            within = ir.Call(BOOL, f"{operator}(int,int)", (part, constant(part.type, int(end))))
            absent = ir.Call(BOOL, "!_(bool)", (ir.HasField(BOOL, part.base, (part.path,)),))
            fact = fact_at(part.base.name, part.path)
            missing = fact is not None and fact.may_be_missing
            parts.append(ir.Or(BOOL, (absent, within)) if missing else within)
    if not parts:
        return constant(BOOL, True)
    return parts[0] if len(parts) == 1 else ir.And(BOOL, tuple(parts))


def _value(graph: RuleGraph, name: str) -> ir.Node:
    """A decision as an expression that has no answer where no rule decides."""
    return _answering(graph.expression(name))


def _answering(node: ir.Node) -> ir.Node:
    conditions: list[ir.Cond] = []
    rest = node
    while isinstance(rest, ir.Cond):
        conditions.append(rest)
        rest = rest.otherwise
    if not (isinstance(rest, ir.Const) and rest.value is None):
        return node
    made: ir.Node = ir.Call(rest.type, "error(unbound)", (constant(STRING, "no rule decides"),))
    for one in reversed(conditions):
        made = ir.Cond(one.type, one.condition, one.then, made)
    return made


def _raised(node: ir.Node, raised: tuple[tuple[str, str], ...]) -> ir.Node:
    """The expression on the second record: what is raised is read from roots of its own."""
    places = frozenset(raised)

    def second(root: str) -> ir.Var:
        return ir.Var(ROOTS[root].type, f"{RAISED}.{root}")

    def change(part: ir.Node) -> ir.Node:
        match part:
            case ir.Field(base=ir.Var(name=root, local=False), path=path) if (root, path) in places:
                return ir.Field(part.type, second(root), path)
            case ir.OptField(base=ir.Var(name=root, local=False), path=path) if (root, path) in places:
                return ir.OptField(part.type, second(root), path)
            case ir.HasField(base=ir.Var(name=root, local=False), paths=(path,)) if (root, path) in places:
                return ir.HasField(part.type, second(root), (path,))
        return part

    return rewrite(node, change)


def _higher(root: str, path: str) -> ir.Node:
    """That a fact is in the second record where it is in the first, and as high there or higher."""
    fact = fact_at(root, path)
    assert fact is not None
    one = ir.Var(ROOTS[root].type, root)
    other = ir.Var(ROOTS[root].type, f"{RAISED}.{root}")
    kind = fact.type.name
    higher = ir.Call(
        BOOL, f"_>=_({kind},{kind})", (ir.Field(fact.type, other, path), ir.Field(fact.type, one, path))
    )
    if not fact.may_be_missing:
        return higher
    has, also = ir.HasField(BOOL, one, (path,)), ir.HasField(BOOL, other, (path,))
    absent = ir.Call(BOOL, "!_(bool)", (has,))
    return ir.And(BOOL, (ir.Call(BOOL, "_==_", (has, also)), ir.Or(BOOL, (absent, higher))))


def _preparing(raised: tuple[tuple[str, str], ...]) -> Callable[[Records], Records]:
    """Makes of any input one whose second record is as is asked for."""

    def prepare(records: Records) -> Records:
        made = dict(records)
        for root in dict.fromkeys(root for root, _ in raised):
            made[f"{RAISED}.{root}"] = dict(records.get(f"{RAISED}.{root}", {}))
        for root, path in raised:
            held, second = records.get(root, {}), made[f"{RAISED}.{root}"]
            if path not in held:
                second.pop(path, None)
                continue
            value, known = held[path], second.get(path)
            if known is None or known < value:
                second[path] = _more(root, path, value)
        return made

    return prepare


def _more(root: str, path: str, value: Any) -> Any:
    fact = fact_at(root, path)
    assert fact is not None
    step = _STEPS.get(fact.type.name, 1_000)
    _, high = bounds_of(root, path, fact.type)
    match value:
        case Duration(ns=ns):
            return Duration(min(ns + step, high))
        case Timestamp(ns=ns):
            return Timestamp(ns + step)
    return min(value + step, type(value)(high))
