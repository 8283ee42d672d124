"""The facts of an input that its answers depend on: what an example has to say so that anybody can ask again.

Everything that was read is said first. What the rules that decided read is told as far as there is any of it, but for
numbers that may be others as well; of the rest each fact is left out where the answers stay what they are
without it, and of maps and lists each part.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from koordpolicy.graph.neutral import element, records_of
from koordpolicy.graph.notation import written
from koordpolicy.graph.proof.reads import Reads, reads_of, type_of_element
from koordpolicy.graph.proof.situations import situations
from koordpolicy.graph.reads import ShownFact, fact_type, shown_value
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import facts_of, inline_binds
from koordpolicy.language.cel.types import Type
from koordpolicy.language.facts import FACTS, ROOTS, Fact

Records = Mapping[str, Any]
Said = dict[tuple[str, str], Any]
"""Facts by root and path. The records of a list have only what is said of them; see `records_saying`."""

_MOST_TRIED: Final = 200
"""Inputs that are tried for one example."""

_MOST_PARTS: Final = 12
"""Entries and elements of one fact that are left out one by one."""

_FEW: Final = 4
"""Sorts of elements of a list that are told."""


def deciding(
    expressions: Iterable[ir.Node],
    records: Records,
    keeps: Callable[[Records], bool],
    told: AbstractSet[tuple[str, str]] = frozenset(),
) -> Said | None:
    """Facts of which `keeps` holds: those `told` in any case, and of the others that the expressions read those without
    which it would not. None where it does not even hold of all that are read.
    """
    trees = [inline_binds(one) for one in expressions]
    said = _read(reads_of(trees), trees, records, told)
    if not keeps(records_saying(said)):
        return None
    tried = 0
    for key in list(said):
        less = {other: value for other, value in said.items() if other != key}
        others = () if key not in told or isinstance(said[key], list | Mapping) else tuple(_others(key, said))
        if key not in told or isinstance(said[key], list | Mapping) or others:
            tried += 1 + len(others)
            if keeps(records_saying(less)) and all(
                keeps(records_saying({**said, key: other})) for other in others
            ):
                said = less
                continue
        going = True
        while going and tried < _MOST_TRIED:
            going = False
            for value in _less(said[key]):
                tried += 1
                if keeps(records_saying({**said, key: value})):
                    said[key], going = value, True
                    break
        if tried >= _MOST_TRIED:
            break
    return said


def _others(key: tuple[str, str], said: Said) -> Iterator[Any]:
    """Values that a fact might have as well: where each of them leaves the answers as they are, it decides nothing."""
    match said[key]:
        case bool():
            return
        case int() as held:
            yield from (number for number in (held // 2, held // 8, held * 2) if number != held)
            for situation in situations():
                record = situation.records.get(key[0])
                other = record.get(key[1]) if isinstance(record, Mapping) else None
                if isinstance(other, int) and other != held:
                    yield other


def records_saying(said: Said) -> dict[str, Any]:
    """The records on which a test is run that says just this."""
    return records_of({key: _whole(_type(*key), value) for key, value in said.items()})


def plain_fact(key: tuple[str, str], value: Any) -> object:
    """What is said, as a test writes it."""
    return _plain(_type(*key), value)


def shown_fact(key: tuple[str, str], value: Any) -> ShownFact:
    """What is said, on one line. Of records in a list it is told how many they are, and what each is like."""
    name = ".".join(part for part in key if part)
    return ShownFact(name, _shown(_type(*key), value), present=True)


def _shown(kind: Type, value: Any) -> str:
    record = _record(kind)
    if record is None or not isinstance(value, list | tuple):
        return shown_value(kind, value)
    count = shown_value(kind, value)
    alike: dict[str, int] = {}
    for one in value:
        words = ", ".join(f"{path} = {_shown(_fact(record, path), held)}" for path, held in one.items())
        alike[words] = alike.get(words, 0) + 1
    if alike.keys() <= {""}:
        return count
    if len(alike) == 1:
        [words] = alike
        return f"{count} ({'each ' if len(value) > 1 else ''}{words})"
    parts = [f"{times} with {words}" if words else f"{times} as usual" for words, times in alike.items()]
    if len(parts) > _FEW:
        parts[_FEW:] = [f"{sum(list(alike.values())[_FEW:])} others"]
    return f"{count} ({'; '.join(parts)})"


def _read(
    reads: Reads, trees: Iterable[ir.Node], records: Records, told: AbstractSet[tuple[str, str]]
) -> Said:
    """All that the expressions read of records, as far as it is told or says something."""
    usual = records_of({})
    places = dict(reads.facts)
    for name, path in sorted(facts_of(*trees)):
        record = ROOTS[name].type.record if not path and name in ROOTS else None
        if record is not None:
            places |= dict.fromkeys((name, fact.path) for fact in FACTS.leaves(record))
    said: Said = {}
    for root, path in places:
        if root not in ROOTS:
            continue
        held, known = records.get(root), usual.get(root)
        if path:
            held = held.get(path) if isinstance(held, Mapping) else None
            known = known.get(path) if isinstance(known, Mapping) else None
        if held is not None and (held != known or (root, path) in told):
            said[root, path] = _said(_type(root, path), held, reads)
    return said


def _said(kind: Type, value: Any, reads: Reads) -> Any:
    """A value, records in it with what is read of them and is not as usual."""
    record = _record(kind)
    if record is None or not isinstance(value, list | tuple):
        return value
    usual = element(record, {})
    paths = [path for name, path in reads.elements if name == record]
    return [
        {
            path: _said(_fact(record, path), held[path], reads)
            for path in paths
            if path in held and held[path] != usual.get(path)
        }
        for held in value
    ]


def _whole(kind: Type, value: Any) -> Any:
    record = _record(kind)
    if record is None or not isinstance(value, list | tuple):
        return value
    return [
        element(record, {path: _whole(_fact(record, path), held) for path, held in one.items()})
        for one in value
    ]


def _plain(kind: Type, value: Any) -> object:
    record = _record(kind)
    if record is None or not isinstance(value, list | tuple):
        return written(kind, value)
    return [{path: _plain(_fact(record, path), held) for path, held in one.items()} for one in value]


def _less(value: Any) -> Iterator[Any]:
    """The same without one entry, one element, or one fact of an element."""
    if isinstance(value, Mapping):
        for key in list(value)[:_MOST_PARTS]:
            yield {other: held for other, held in value.items() if other != key}
    elif isinstance(value, list):
        for at in range(min(len(value), _MOST_PARTS)):
            yield value[:at] + value[at + 1 :]
        for at, one in enumerate(value[:_MOST_PARTS]):
            if isinstance(one, Mapping):
                yield from ([*value[:at], less, *value[at + 1 :]] for less in _less(one))


def _type(root: str, path: str) -> Type:
    return fact_type(f"{root}.{path}" if path else root)


def _record(kind: Type) -> str | None:
    inner = type_of_element(kind)
    return None if inner is None else inner.record


def _fact(record: str, path: str) -> Type:
    fact = FACTS.resolve(record, path)
    return fact.type if isinstance(fact, Fact) else Type("dyn")
