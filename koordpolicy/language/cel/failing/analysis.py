"""Where an expression can end in an error.

Every node is looked at with what is known where it is evaluated. A list of failures is complete in this sense: whenever
an evaluation ends in an error (limits and defects aside, and amounts beyond what clusters have where they are bounded),
one of the failures is among its reasons.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.defects import guarded
from koordpolicy.language.cel.errors import CelError, LimitExceeded
from koordpolicy.language.cel.failing.assume import Assumptions
from koordpolicy.language.cel.failing.calls import (
    CHOOSING,
    CONSTANT_FIRST,
    DIVIDING,
    OVER_TIME,
    OVERFLOWING,
    is_of_any_type,
    is_total,
)
from koordpolicy.language.cel.failing.causes import FailureCause, PossibleFailure
from koordpolicy.language.cel.failing.keys import Keys
from koordpolicy.language.cel.failing.known import NOTHING, Atom, Known
from koordpolicy.language.cel.failing.ranges import FITS, INT, UINT, Ranges, is_by_much, raw
from koordpolicy.language.cel.failing.times import MEASURED_TIMES
from koordpolicy.language.cel.ir_walk import inline_binds, rewrite, walk
from koordpolicy.language.cel.library import FUNCTIONS, OVERLOADS
from koordpolicy.language.cel.library.formatting import check_format
from koordpolicy.language.cel.lower.apply import implementation
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.meter import UNMETERED
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.cel.walk import children

MAX_STEPS: Final = 50_000
"""Nodes that are looked at for one expression, each as often as something else is known of it."""

_MAX_OPERANDS: Final = 24
"""Operands of one `&&` or `||` of which later ones may tell something of earlier ones."""


class Presence(Protocol):
    """Which facts need not be there."""

    def fact(self, root: str | None, record: str, path: str) -> bool:
        """Whether a fact of a record may be missing; `root` where the record is one itself."""

    def root(self, name: str) -> bool:
        """Whether a root may be absent."""

    def with_fact(self, record: str, path: str) -> Collection[str]:
        """The facts of the record that are there wherever this one is."""

    def roots_of(self, root: str, texts: Collection[str]) -> Collection[str]:
        """The roots that are there where another one is one of these texts."""

    def never_negative(self, record: str, path: str) -> bool:
        """Whether a number of a record is never below zero."""


Given = tuple[ir.Node, bool]
"""A test, and whether it was true or false."""

_MAX_WORLDS: Final = 16


class TooManySteps(Exception):
    """There is more to look at than is worth it."""


def failures(
    expression: ir.Node, presence: Presence, given: Sequence[Given] = (), *, bounded: bool = True
) -> tuple[PossibleFailure, ...]:
    """Where an expression can fail, in order of evaluation; the same cause as often as it stands there.

    `given` are tests that were evaluated before, with their outcome. With `bounded`, amounts and times of facts and
    parameters are taken to be such as clusters have, so that arithmetic with them does not overflow. Raises `TooManySteps`.
    """
    analysis = _Analysis(presence, bounded=bounded)
    whole = inline_binds(expression)
    try:
        worlds = [NOTHING]
        for test, truth in given:
            plain = inline_binds(test)
            worlds = [
                one for known in worlds for one in analysis.assumptions.worlds(plain, known, truth=truth)
            ]
            worlds = worlds[:1] if len(worlds) > _MAX_WORLDS else worlds
        found = [one for known in worlds for one in analysis.of(whole, known)]
    except RecursionError:
        raise TooManySteps from None
    return tuple({id(one.node): one for one in found}.values())


def could_fail(expression: ir.Node, presence: Presence, *, bounded: bool = True) -> frozenset[FailureCause]:
    """The causes of failures if nothing were known: a quick look, by which many expressions are done with.

    Where there is none, or only missing facts, there is no other under any assumption: what is known takes failures away.
    (Past what fails for sure others may be found than here.) Raises `TooManySteps`.
    """
    analysis = _Analysis(presence, bounded=bounded, assume=_NOTHING_ASSUMED)
    try:
        return frozenset(one.cause for one in analysis.of(inline_binds(expression), NOTHING))
    except RecursionError:
        raise TooManySteps from None


@dataclass(frozen=True, slots=True)
class _Element:
    """What the variables of a macro run over."""

    range: ir.Node
    names: tuple[str, ...]


class _Assuming(Protocol):
    """What of `Assumptions` is asked for each node."""

    def evaluated(self, node: ir.Node, known: Known) -> Known: ...

    def holds(self, test: ir.Node, known: Known, *, truth: bool = True) -> Known: ...


class _NothingAssumed:
    """Whatever was tested before, no more is known."""

    def evaluated(self, node: ir.Node, known: Known) -> Known:
        return known

    def holds(self, test: ir.Node, known: Known, *, truth: bool = True) -> Known:
        return known


_NOTHING_ASSUMED: Final = _NothingAssumed()


class _Analysis:
    """One expression."""

    def __init__(self, presence: Presence, *, bounded: bool, assume: _Assuming | None = None) -> None:
        self.keys = Keys()
        self.ranges = Ranges(self.keys, bounded=bounded, never_negative=presence.never_negative)
        self.assumptions = Assumptions(self.keys, self.ranges, self.atom, presence.roots_of)
        self.assume: _Assuming = assume or self.assumptions
        self._presence = presence
        self._bounded = bounded
        self._done: dict[tuple[int, int], tuple[PossibleFailure, ...]] = {}
        self._alive: list[tuple[ir.Node, Known]] = []
        self._steps = 0

    def of(self, node: ir.Node, known: Known) -> tuple[PossibleFailure, ...]:
        """The failures of a node and all below it."""
        if known.impossible or isinstance(node, ir.Const):
            return ()
        key = (id(node), id(known))
        found = self._done.get(key)
        if found is None:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise TooManySteps
            found = self._done[key] = tuple(self._found(node, known))
            self._alive.append((node, known))
        return found

    def _found(self, node: ir.Node, known: Known) -> Iterator[PossibleFailure]:
        match node:
            case ir.And(args=args) | ir.Or(args=args):
                yield from self._logic(args, known, truth=isinstance(node, ir.And))
            case ir.Cond(condition=condition, then=then, otherwise=otherwise):
                yield from self.of(condition, known)
                yield from self._not_bool(condition)
                yield from self.of(then, self.assume.holds(condition, known))
                yield from self.of(otherwise, self.assume.holds(condition, known, truth=False))
            case ir.Holds(operand=operand, otherwise=otherwise):
                if self.of(operand, known):
                    yield from self.of(otherwise, known)
            case ir.OrElse(operand=operand, other=other):
                yield from self.of(operand, known)
                yield from self.of(other, self.assume.evaluated(operand, known))
                if "dyn" in (operand.type.name, other.type.name):
                    yield PossibleFailure(node, FailureCause.TYPE, ("type", self.keys.of(node)))
            case ir.OptMap(operand=operand, body=body):
                yield from self.of(operand, known)
                yield from self.of(body, self.assume.evaluated(operand, known))
                if operand.type.name == "dyn" or (node.flat and body.type.name == "dyn"):
                    yield PossibleFailure(node, FailureCause.TYPE, ("type", self.keys.of(node)))
            case ir.Comprehension():
                yield from self._loop(node, known)
            case _:
                for part in children(node):
                    yield from self.of(part, known)
                    known = self.assume.evaluated(part, known)
                own = self._own(node, known)
                if own is not None:
                    yield own

    # Logic

    def _logic(self, args: tuple[ir.Node, ...], known: Known, *, truth: bool) -> Iterator[PossibleFailure]:
        """An operand's error counts only where no other decides: those before it were neutral, and of those after it
        the ones that cannot fail.

        Of the failing operands of an evaluation that fails, the first one is found: all before it had a value.
        """
        before = known
        for at, arg in enumerate(args):
            beside = before
            if len(args) <= _MAX_OPERANDS:
                for later in args[at + 1 :]:
                    if not self.of(later, before) and not self._is_untyped(later):
                        beside = self.assume.holds(later, beside, truth=truth)
            yield from self.of(arg, beside)
            yield from self._not_bool(arg)
            before = self.assume.holds(arg, before, truth=truth)

    def _not_bool(self, node: ir.Node) -> Iterator[PossibleFailure]:
        if self._is_untyped(node):
            yield PossibleFailure(node, FailureCause.TYPE, ("bool", self.keys.of(node)))

    @staticmethod
    def _is_untyped(node: ir.Node) -> bool:
        return node.type.name != "bool"

    # Loops

    def _loop(self, node: ir.Comprehension, known: Known) -> Iterator[PossibleFailure]:
        yield from self.of(node.range, known)
        if node.range.type.name == "dyn":
            yield PossibleFailure(node, FailureCause.TYPE, ("range", self.keys.of(node.range)))
        known = self.assume.evaluated(node.range, known)
        known = known.within(self.keys.size(node.range), 1.0, float("inf"))
        within = self._element(_Element(node.range, node.variables), known)
        if node.predicate is not None:
            yield from self.of(node.predicate, within)
            yield from self._not_bool(node.predicate)
            within = self.assume.holds(node.predicate, within)
        if node.transform is not None:
            yield from self.of(node.transform, within)
            if node.macro == "transformMapEntry" and not self._distinct(node):
                yield PossibleFailure(node, FailureCause.DUPLICATE, ("distinct", self.keys.of(node)))
            if node.macro == "sortBy" and node.transform.type.name == "dyn":
                yield PossibleFailure(node, FailureCause.TYPE, ("order", self.keys.of(node)))

    def _element(self, element: _Element, known: Known) -> Known:
        """What is known of an element of a range, by the names of the variables."""
        walked, names = element.range, element.names
        container, variable = self.keys.of(walked), self.keys.of(ir.Var(walked.type, names[0], local=True))
        if walked.type.name == "map":
            known = known.with_atoms([("key", container, variable)])
        elif walked.type.name == "list" and len(names) > 1:
            known = known.with_atoms([("inside", container, variable)])
        if isinstance(walked, ir.Comprehension) and walked.macro == "filter" and len(walked.variables) == 1:
            # What a filter has let through fulfils its predicate, and is an element of what it filters.
            inner = self._element(_Element(walked.range, names[-1:]), known)
            assert walked.predicate is not None
            return self.assume.holds(_renamed(walked.predicate, walked.variables[0], names[-1]), inner)
        if isinstance(walked, ir.Call) and walked.overload.removeprefix(".") in _SAME_ELEMENTS:
            return self._element(_Element(walked.args[0], names[-1:]), known)
        if isinstance(walked, ir.Cond):
            one = self._element(_Element(walked.then, names), known)
            return one.or_else(self._element(_Element(walked.otherwise, names), known))
        return known

    def _distinct(self, node: ir.Comprehension) -> bool:
        """Whether the keys of a map that is made surely differ: the keys of a map, or distinct elements, as they are."""
        entry = node.transform
        if not isinstance(entry, ir.MakeMap) or len(entry.entries) != 1:
            return False
        key = entry.entries[0][0]
        if not isinstance(key, ir.Var) or not key.local:
            return False
        if node.range.type.name == "map":
            return key.name == node.variables[0]
        return key.name == node.variables[0] or _is_distinct(node.range)

    # Nodes by themselves

    def atom(self, node: ir.Node) -> Atom | None:
        """What has to be known for a node not to fail, its operands given; None where it cannot."""
        match node:
            case ir.Field(base=base, path=path):
                return self._fact(base, path)
            case ir.Select(operand=operand, field=field, optional=False, test=False) if (
                operand.type.name == "map"
            ):
                return ("key", self.keys.of(operand), self.keys.text(field))
            case ir.Index(operand=operand, index=index, optional=False) if operand.type.name in (
                "map",
                "list",
            ):
                kind = "key" if operand.type.name == "map" else "inside"
                return (kind, self.keys.of(operand), self.keys.of(index))
            case ir.Call():
                return self._call_atom(node)
        return None

    def _fact(self, base: ir.Node, path: str) -> Atom | None:
        is_root = isinstance(base, ir.Var) and not base.local
        record = base.type.record or base.type.name
        root = base.name if is_root and isinstance(base, ir.Var) else None
        if self._presence.fact(root, record, path):
            return ("fact", self.keys.of(base), path)
        if is_root and isinstance(base, ir.Var) and self._presence.root(base.name):
            return ("record", base.name)
        return None

    def _call_atom(self, node: ir.Call) -> Atom | None:
        overload = node.overload
        if overload in DIVIDING:
            return ("nonzero", self.keys.of(node.args[1]))
        if overload == "value(optional_type(T))":
            return ("some", self.keys.of(node.args[0]))
        if is_total(node) or overload in OVERFLOWING or overload in OVER_TIME:
            return None
        return ("taken", overload, *map(self.keys.of, node.args))

    def _own(self, node: ir.Node, known: Known) -> PossibleFailure | None:
        """How a node fails whose operands have values; None where it does not."""
        cause = self._cause(node, known)
        if cause is None:
            return None
        atom = self.atom(node) or (cause.value, self.keys.of(node))
        return PossibleFailure(node, cause, atom, _fails_for_sure(node) or _has_bad_constant(node))

    def _cause(self, node: ir.Node, known: Known) -> FailureCause | None:
        match node:
            case ir.Field(base=base):
                atom = self._fact(base, node.path)
                if atom is None or atom in known or self._comes_with(node, known):
                    return None
                return FailureCause.FACT
            case ir.Select(operand=operand) if (
                node.optional or node.test or operand.type.name == "optional_type"
            ):
                return FailureCause.TYPE if _held(operand.type).name not in ("map", "record") else None
            case ir.Select(operand=operand):
                return self._unless(
                    node, known, FailureCause.KEY if operand.type.name == "map" else FailureCause.TYPE
                )
            case ir.Index(operand=operand):
                return self._index(node, operand.type.name, known)
            case ir.Cast(operand=operand):
                # What a slot takes beyond its type is another check's, which knows what a value may be.
                return None if self._bounded and operand.type == node.type else FailureCause.TYPE
            case ir.MakeMap(entries=entries):
                return None if self._differ([key for key, _ in entries]) else FailureCause.DUPLICATE
            case ir.Call():
                return self._call(node, known)
        return None

    def _differ(self, keys: list[ir.Node]) -> bool:
        """Whether the keys of a map that is written surely differ, and are keys."""
        if len(keys) < 2:
            return all(key.type.name != "dyn" for key in keys)
        return all(isinstance(key, ir.Const) for key in keys) and len(set(map(self.keys.of, keys))) == len(
            keys
        )

    def _comes_with(self, node: ir.Field, known: Known) -> bool:
        """Whether another fact that is known to be there never is without this one."""
        record, base = node.base.type.record or "", self.keys.of(node.base)
        return any(
            isinstance(atom[2], str) and node.path in self._presence.with_fact(record, atom[2])
            for atom in known.atoms
            if atom[0] == "fact" and atom[1] == base
        )

    def _unless(self, node: ir.Node, known: Known, cause: FailureCause) -> FailureCause | None:
        atom = self.atom(node)
        return None if atom is not None and atom in known else cause

    def _index(self, node: ir.Index, container: str, known: Known) -> FailureCause | None:
        if node.optional or container == "optional_type":
            held = _held(node.operand.type).name
            plain = node.index.type.name == "int" if held == "list" else held == "map"
            return None if plain else FailureCause.TYPE
        if container == "dyn":
            return FailureCause.TYPE
        if container == "map":
            return self._unless(node, known, FailureCause.KEY)
        if node.index.type.name != "int":
            return FailureCause.INDEX
        low, high = self.ranges.of(node.index, known)
        least = self._least_size(node.operand, known)
        if low >= 0 and high < least:
            return None
        return self._unless(node, known, FailureCause.INDEX)

    def _least_size(self, node: ir.Node, known: Known) -> float:
        """How many elements a list has at least."""
        own = 0.0
        match node:
            case ir.Const(value=list() | tuple() as values):
                own = float(len(values))
            case ir.MakeList(elements=elements, optional=optional):
                own = float(len(elements) - len(optional))
            case ir.Call(overload="_+_(list,list)", args=(left, right)):
                own = self._least_size(left, known) + self._least_size(right, known)
            case ir.Call(overload=overload, args=(walked,)) if overload.removeprefix(".") in _SAME_ELEMENTS:
                least = self._least_size(walked, known)
                own = min(1.0, least) if overload.endswith("distinct(list(T))") else least
            case ir.Comprehension(macro="map" | "transformList" | "sortBy", predicate=None, range=walked):
                own = self._least_size(walked, known)
        return max(own, known.ranges.get(self.keys.size(node), (0.0, 0.0))[0])

    # Calls

    def _call(self, node: ir.Call, known: Known) -> FailureCause | None:
        overload, args = node.overload, node.args
        if overload in DIVIDING:
            return self._division(node, known)
        if overload in OVERFLOWING:
            return None if self._fits(node, known) else FailureCause.OVERFLOW
        if overload in OVER_TIME:
            fits = self._bounded and not _fails_for_sure(node) and self._fits_time(node, known)
            return None if fits else FailureCause.OVERFLOW
        if is_total(node):
            return None
        if overload == "value(optional_type(T))":
            return self._unless(node, known, FailureCause.OPTIONAL)
        if is_of_any_type(node):
            return FailureCause.TYPE
        name = overload.partition("(")[0].removeprefix(".")
        if overload.removeprefix(".") in CHOOSING:
            if "dyn" in overload:
                return FailureCause.TYPE
            return None if self._least_size(args[0], known) >= 1 else FailureCause.ARGUMENT
        at = CONSTANT_FIRST.get(name)
        if at is not None and len(args) > at and isinstance(args[at], ir.Const) and _takes_constant(node, at):
            return None
        if self._takes_all(node, known):
            return None
        return self._unless(node, known, FailureCause.ARGUMENT)

    def _division(self, node: ir.Call, known: Known) -> FailureCause | None:
        divisor = node.args[1]
        low, high = self.ranges.of(divisor, known)
        nonzero = ("nonzero", self.keys.of(divisor)) in known or not low <= 0.0 <= high
        if not nonzero:
            return FailureCause.ZERO
        if node.overload == "divide(int,double)":
            return (
                None if self._within(raw(node, self._operands(node, known)), "int") else FailureCause.OVERFLOW
            )
        if node.overload in ("_/_(int,int)", "_%_(int,int)"):
            least = self.ranges.of(node.args[0], known)[0] <= INT[0]
            return FailureCause.OVERFLOW if least and low <= -1.0 <= high else None
        return None

    def _operands(self, node: ir.Call, known: Known) -> tuple[tuple[float, float], ...]:
        return tuple(self.ranges.of(arg, known) for arg in node.args)

    def _fits(self, node: ir.Call, known: Known) -> bool:
        """Whether the result lies within its type."""
        operands = self._operands(node, known)
        name = node.overload.partition("(")[0].removeprefix(".")
        if name == "sum":
            return self._bounded
        if name in ("int", "uint", "millicores", "bytesOf"):
            return self._within(operands[0], node.type.name)
        # What a cluster has, and what is made of it, does not come near the bounds; what a text says may.
        tame = self._bounded and not is_by_much(node)
        tame = tame and all(max(abs(low), abs(high)) < _TAME for low, high in operands)
        constant = all(isinstance(arg, ir.Const) for arg in node.args)
        return (tame and not constant) or self._within(raw(node, operands), node.type.name)

    def _fits_time(self, node: ir.Call, known: Known) -> bool:
        """Whether a time that is made of others can be held."""
        if node.type.name not in MEASURED_TIMES or len(node.args) != 2:
            return True
        return self._within(raw(node, self._operands(node, known)), node.type.name)

    @staticmethod
    def _within(found: tuple[float, float], kind: str) -> bool:
        low, high = found
        if kind in MEASURED_TIMES:
            least, most = MEASURED_TIMES[kind]
            return least <= low and high <= most
        if kind == "uint":
            return low >= 0 and high < UINT[1]
        return low > -FITS and high < FITS

    def _takes_all(self, node: ir.Call, known: Known) -> bool:
        """Whether a function takes each of the few texts that its only argument may be."""
        if len(node.args) != 1:
            return False
        texts = known.texts.get(self.keys.of(node.args[0]))
        apply = implementation(node.overload, FUNCTIONS)
        if not texts or apply is None:
            return False
        try:
            for text in texts:
                guarded(lambda text=text: apply(list(UNMETERED), text))  # type: ignore[misc]
        except CelError:
            return False
        return True


_TAME: Final = 2.0**62

_SAME_ELEMENTS: Final = frozenset(
    (
        "distinct(list(T))", "reverse(list(T))", "slice(list(T),int,int)",
        *(f"sort(list({kind}))" for kind in ("int", "uint", "double", "bool", "string", "bytes")),
    )
)  # fmt: skip
"""Calls that make a list of elements of another."""


def _held(kind: Type) -> Type:
    """A type, or what an optional of it holds."""
    while kind.name == "optional_type" and kind.params:
        kind = kind.params[0]
    return kind


def _renamed(node: ir.Node, old: str, new: str) -> ir.Node:
    if old == new:
        return node

    def change(part: ir.Node) -> ir.Node:
        is_it = isinstance(part, ir.Var) and part.local and part.name == old
        return ir.Var(part.type, new, local=True, start=part.start, end=part.end) if is_it else part

    return rewrite(node, change)


def _is_distinct(node: ir.Node) -> bool:
    match node:
        case ir.Call(overload=overload) if overload.removeprefix(".") == "distinct(list(T))":
            return True
        case ir.Call(overload=overload, args=args) if overload.removeprefix(".") in _SAME_ELEMENTS:
            return _is_distinct(args[0])
        case ir.Comprehension(macro="filter", range=walked):
            return walked.type.name == "map" or _is_distinct(walked)
        case ir.Const(value=list() | tuple() as values):
            return all(value not in values[:at] for at, value in enumerate(values))
    return False


_SAMPLES: Final[Mapping[str, object]] = {
    "string": "",
    "int": 1,
    "google.protobuf.Timestamp": Timestamp(0),
}


def _takes_constant(call: ir.Call, at: int) -> bool:
    """Whether a function takes an argument that is a constant, whatever the others are."""
    overload, constant = OVERLOADS.get(call.overload), call.args[at]
    if overload is None or not isinstance(constant, ir.Const):
        return False
    if call.overload.startswith("regex.replace("):
        written = call.args[2].value if isinstance(call.args[2], ir.Const) else "\\"
        if not isinstance(written, str) or "\\" in written:
            return False  # a group that the pattern need not have
    try:
        if call.overload == "format(string,list(dyn))":
            listed = call.args[1]
            if not isinstance(listed, ir.MakeList) or not isinstance(constant.value, str) or listed.optional:
                return False
            check_format(constant.value, [element.type for element in listed.elements])
            return True
        samples = [_SAMPLES[argument.type.name] for argument in call.args]
        samples[at] = constant.value
        guarded(lambda: overload.implementation(*samples))
    except (CelError, KeyError):
        return False
    return True


def _has_bad_constant(node: ir.Node) -> bool:
    """Whether a function fails of a constant argument, whatever the others are."""
    if not isinstance(node, ir.Call):
        return False
    at = CONSTANT_FIRST.get(node.overload.partition("(")[0].removeprefix("."))
    if at is None or len(node.args) <= at or not isinstance(node.args[at], ir.Const) or at == 0:
        return False
    return "regex.replace" not in node.overload and not _takes_constant(node, at)


def _fails_for_sure(node: ir.Node) -> bool:
    """Whether a node of constants alone fails whenever it is reached."""
    parts = children(node)
    if not parts or not all(isinstance(part, ir.Const) for part in parts):
        return False
    if any(isinstance(part, ir.Var | ir.Ref) for part in walk(node)):
        return False
    try:
        compile_row((), node).call()
    except LimitExceeded:
        return False
    except CelError:
        return True
    return False
