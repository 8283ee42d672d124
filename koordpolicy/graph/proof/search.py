"""Directed search: everyday inputs, values that the expressions name, and steps towards the edge of a comparison."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

from koordpolicy.graph.analysis.facts import bounds_of, is_above_zero, record_of
from koordpolicy.graph.neutral import element
from koordpolicy.graph.proof.draws import Draws
from koordpolicy.graph.proof.goal import Goal, arguments
from koordpolicy.graph.proof.inputs import inputs
from koordpolicy.graph.proof.pools import Pools, is_missable, value_type_of
from koordpolicy.graph.proof.reads import Reads, reads_of
from koordpolicy.graph.proof.situations import situations
from koordpolicy.graph.proof.validity import is_valid
from koordpolicy.graph.proof.verdict import Records
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import inline_binds, number, rewrite
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import Duration, Timestamp
from koordpolicy.language.cel.walk import children

NumberKey: TypeAlias = tuple[str, str, str | None]
"""A number by its root, its path, and its key where it stands in a map."""

_ORDERED: Final = frozenset(("_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_", "max", "min"))
_NUMBERS: Final = frozenset(("int", "double", "google.protobuf.Duration", "google.protobuf.Timestamp"))
_MOST_COMPARISONS: Final = 40
_MOST_FACTS: Final = 8
_MOST_STEPS: Final = 90
_LONGEST_STEP: Final = 2**50
_GROWTH: Final = 16
_MOST_ELEMENTS: Final = 4


class Search:
    """Looks for an input that meets a goal; counts what it tries."""

    def __init__(self, goal: Goal, reads: Reads, pools: Pools, rng: Draws, moment: int | None = None) -> None:
        self.goal = goal
        self.reads = reads
        self.pools = pools
        self.rng = rng
        self.situations = situations(moment)
        self._moment = moment
        self.tried = 0
        self._regions: list[Records] | None = None

    def everyday(self) -> Iterator[Records]:
        """Everyday inputs, and the boundaries of what the expressions compare, that meet the goal."""
        for made in inputs(*self.goal.expressions, moment=self._moment):
            records = self.goal.prepared(made.records)
            if self._meets(records):
                yield records

    def drawn(self, most: int, wanted: Callable[[Records], bool] | None = None) -> Records | None:
        """An input among so many that are drawn at random; only one that is `wanted`."""
        bases = self._bases()
        for _ in range(most):
            records = self.goal.prepared(self.change(self.rng.choice(bases)))
            if (wanted is None or wanted(records)) and self._meets(records):
                return records
        return None

    def stepped(self, most: int, bases: Iterable[Records] | None = None) -> Records | None:
        """An input at the edge of some comparison: one number after the other is moved until both sides are equal."""
        stop = self.tried + most
        comparisons = self._comparisons()
        for base in bases if bases is not None else self._starts():
            for program, facts in comparisons:
                for moved in self._towards(program, facts, base):
                    records = self.goal.prepared(moved)
                    if self._meets(records):
                        return records
                    if self.tried >= stop:
                        return None
        return None

    def near(self, records: Records, most: int) -> Records | None:
        """An input like this one but for a fact or two."""
        for _ in range(most):
            changed = self.goal.prepared(self.change(records, few=True))
            if self._meets(changed):
                return changed
        return None

    def change(self, base: Records, *, few: bool = False) -> Records:
        """The records with some facts drawn anew."""
        rng = self.rng
        places = list(self.reads.facts)
        if not places:
            return base
        count = 1 if few and rng.share() < 0.5 else min(len(places), rng.choice((1, 2, 3, 4, 6, len(places))))
        records = dict(base)
        copied: set[str] = set()
        for root, path in rng.sample(places, count):
            kind = value_type_of(root, path)
            if kind is None:
                continue
            if not path:
                records[root] = self.pools.value(rng, root, "", kind)
                continue
            record = records.get(root)
            if root not in copied:
                # Where there is no such object, it comes with all that is never missing.
                record = records[root] = dict(record) if record else element(record_of(root), {})
                copied.add(root)
            assert isinstance(record, dict)
            self._set(record, root, path, kind)
        return records

    def _set(self, record: dict[str, Any], root: str, path: str, kind: Type) -> None:
        rng = self.rng
        if is_missable(root, path) and rng.share() < 0.2:
            record.pop(path, None)
        elif kind.is_number and rng.share() < 0.15:
            alike = [
                record[other]
                for known, other in self.reads.facts
                if known == root and other in record and value_type_of(known, other) == kind
            ]
            value = rng.choice(alike) if alike else self.pools.value(rng, root, path, kind)
            low, high = bounds_of(root, path, kind)
            record[path] = value if not low <= value + 1 <= high else value + rng.choice((0, 1, 0))
        else:
            record[path] = self.pools.value(rng, root, path, kind)
        if record.get(path) == 0 and is_above_zero(root, path):
            record[path] = 1.0

    def _meets(self, records: Records) -> bool:
        self.tried += 1
        return self.goal.met(records) and is_valid(records, self.situations[0].records)

    def _bases(self) -> list[Records]:
        """Where draws begin: the situations, and inputs within the regions of conditions."""
        if self._regions is None:
            found = [situation.records for situation in self.situations]
            within = [
                made.records for made in islice(inputs(*self.goal.expressions, moment=self._moment), 200)
            ]
            self._regions = [*found, *found, *within]
        return self._regions

    def _starts(self) -> list[Records]:
        bases = self._bases()
        starts: list[Records] = [situation.records for situation in self.situations[:3]]
        starts += [self.goal.prepared(self.change(self.rng.choice(bases))) for _ in range(12)]
        return starts

    def _comparisons(self) -> list[tuple[RowProgram, list[NumberKey]]]:
        """Differences of what is compared, as programs, and the numbers that they read."""
        table = number([inline_binds(expression) for expression in self.goal.expressions])
        elements = _elements(table.nodes)
        found: list[tuple[RowProgram, list[NumberKey]]] = []
        for at in reversed(range(len(table.nodes))):
            node = table.nodes[at]
            if len(found) >= _MOST_COMPARISONS or not isinstance(node, ir.Call):
                continue
            if node.overload.partition("(")[0] not in _ORDERED:
                continue
            for told in _instances(node, table.free[at], elements):
                sides = [arg for arg in children(told) if arg.type.name in _NUMBERS]
                facts = list(_numbers_read(told))[:_MOST_FACTS]
                if len(sides) != 2 or not facts:
                    continue
                roots = list(dict.fromkeys(root for root, _ in self.reads.facts))
                try:
                    program = compile_row(roots, {"left": sides[0], "right": sides[1]})
                except ValueError:
                    continue
                found.append((program, facts))
        return found

    def _towards(self, program: RowProgram, facts: Sequence[NumberKey], base: Records) -> Iterator[Records]:
        """Records on the way to equal sides, each nearer than those before, with the neighbours of the last."""
        records, apart = base, _apart(program, base)
        if apart is None:
            return
        steps = 0
        for place in facts:
            step = max(1, abs(int(apart)))
            grows = True  # a share hardly sees a few bytes: steps grow until one is felt
            while steps < _MOST_STEPS and 1 <= step <= _LONGEST_STEP and apart:
                steps += 1
                better = None
                felt = False
                for signed in (step, -step):
                    moved = _moved(records, place, signed)
                    if moved is None:
                        continue
                    distance = _apart(program, moved)
                    felt = felt or (distance is not None and distance != apart)
                    if distance is not None and abs(distance) < abs(apart):
                        better = (moved, distance)
                        break
                if better is not None:
                    records, apart = better
                    yield records
                    step = step if step > abs(apart) else max(1, abs(int(apart)))
                elif grows and not felt:
                    step *= _GROWTH
                else:
                    grows = False
                    step //= 2
        for place in facts:
            for signed in (1, -1, 2):
                moved = _moved(records, place, signed)
                if moved is not None:
                    yield moved


def _elements(nodes: Iterable[ir.Node]) -> Mapping[str, Sequence[ir.Const]]:
    """What the variables of loops over constant lists are, one after the other."""
    found: dict[str, Sequence[ir.Const]] = {}
    for node in nodes:
        match node:
            case ir.Comprehension(range=ir.Const(value=list() as held, type=kind), variables=(name,)):
                found[name] = [constant(kind.params[0], one) for one in held[:_MOST_ELEMENTS]]
    return found


def _instances(
    node: ir.Node, free: frozenset[str], elements: Mapping[str, Sequence[ir.Const]]
) -> Iterator[ir.Node]:
    """A node for each element of the loop that it stands in; the node itself outside of loops."""
    if not free:
        yield node
    elif len(free) == 1 and (name := next(iter(free))) in elements:
        for element in elements[name]:
            yield rewrite(node, partial(_with_element, name, element))


def _with_element(name: str, element: ir.Const, node: ir.Node) -> ir.Node:
    return element if isinstance(node, ir.Var) and node.local and node.name == name else node


def _numbers_read(node: ir.Node) -> Iterator[NumberKey]:
    """The numbers that an expression reads, those in maps by their keys."""
    reads = reads_of([node])
    for root, path in reads.facts:
        kind = value_type_of(root, path)
        if kind is not None and kind.name in _NUMBERS:
            yield root, path, None
        elif kind is not None and kind.name == "map" and kind.params[1].name in _NUMBERS:
            yield from ((root, path, key) for key in reads.keys)


def _apart(program: RowProgram, records: Records) -> float | None:
    """How far the sides are apart; None where one has no value."""
    answers = program.call(*arguments(program.roots, records))
    left, right = _plain(answers["left"]), _plain(answers["right"])
    if left is None or right is None:
        return None
    difference = left - right
    return difference if difference == difference and abs(difference) < 2**70 else None


def _plain(value: object) -> float | None:
    if isinstance(value, Duration | Timestamp):
        return value.ns
    if isinstance(value, CelError) or not isinstance(value, int | float):
        return None
    return value


def _moved(records: Records, place: NumberKey, step: int) -> Records | None:
    """The records with a number moved; None where it is absent, or would leave its bounds."""
    root, path, key = place
    kind = value_type_of(root, path)
    record = records.get(root)
    if kind is None:
        return None
    if not path:
        moved = _beside(record, step, bounds_of(root, path, kind))
        return None if moved is None else {**records, root: moved}
    if not isinstance(record, Mapping) or path not in record:
        return None
    held = record[path]
    if key is not None and not isinstance(held, Mapping):
        return None
    number = held.get(key) if key is not None else held
    moved = _beside(number, step, bounds_of(root, path, kind))
    if moved is None:
        return None
    changed = {**held, key: moved} if key is not None else moved
    return {**records, root: {**record, path: changed}}


def _beside(held: Any, step: int, bounds: tuple[int, int]) -> Any:
    """A number so far from another; None where that is beyond its bounds."""
    moved: Any
    plain: float
    match held:
        case Duration(ns=ns):
            moved, plain = Duration(ns + step), ns + step
        case Timestamp(ns=ns):
            moved, plain = Timestamp(ns + step), ns + step
        case bool():
            return None
        case int() | float():
            moved = plain = held + step
        case _:
            return None
    low, high = bounds
    return moved if low <= plain <= high else None
