"""Values worth trying for a fact: what it is compared with and what lies beside that, usual and extreme ones."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Any, Final

from koordpolicy.graph.analysis.facts import RAISED, USUAL_TEXTS, bounds_of, choices_of, fact_at, record_of
from koordpolicy.graph.neutral import element
from koordpolicy.graph.proof.draws import Draws
from koordpolicy.graph.proof.reads import Reads
from koordpolicy.language.cel.types import Type, Unit
from koordpolicy.language.cel.values import INT_MAX, INT_MIN, Duration, Timestamp, UInt
from koordpolicy.language.cel.values_time import NANOS
from koordpolicy.language.facts import FACTS, ROOTS

_USUAL: Final[Mapping[Unit | None, tuple[int, ...]]] = {
    Unit.CPU: (0, 1, 100, 500, 1_000, 1_500, 4_000, 16_000, 31_999, 64_000),
    Unit.BYTES: (0, 1, 1 << 20, 1 << 30, 5 << 30, 64 << 30, 256 << 30),
    Unit.BANDWIDTH: (0, 1, 10**6, 10**9),
    Unit.AMOUNT: (0, 1, 2, 100, 1_000, 4_000, 8 << 30),
    None: (0, 1, 2, 3, 5, 7, 10, 50, 100, 1_000),
}
_LEAST: Final[Mapping[Unit | None, int]] = {Unit.CPU: 100, Unit.BYTES: 1 << 20, Unit.BANDWIDTH: 10**6}
"""The least of a unit, but for none of it, that is of everyday size."""

_DOUBLES: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 10.0, 50.0, 65.0, 99.9, 100.0)
_SIGNED: Final = (-1, -2, -1_000)
_EXTREME: Final = (INT_MAX, INT_MAX - 1, INT_MIN, 2**31 - 1, 2**53, 2**53 + 1)
_BASE: Final = 1_767_225_600 * NANOS  # 2026-01-01T00:00:00Z, a Thursday
_DAY: Final = 86_400 * NANOS
_LONGEST: Final = 400
_MOST_SIZES: Final = 12
_MOST_AFFIXES: Final = 4
_LEFT_OUT: Final = 0.2
_NEARLY_ALL: Final = 0.9
_TEXTS: Final = ("", "a", "b", "other", "true", "false")
_RESOURCES: Final = ("cpu", "memory")
"""Keys of maps of amounts where the expressions name none but go through them: what they compare has to meet in some."""


class Pools:
    """Draws values of facts for expressions with these reads; `named` are texts that facts are known to have.

    `named` maps (record, path) to texts, such as the names of QoS classes. Those that are `ordinary` have amounts of
    everyday size alone, and texts that say something.
    """

    def __init__(
        self, reads: Reads, named: Mapping[tuple[str, str], Iterable[str]], *, ordinary: bool = False
    ) -> None:
        self.reads = reads
        self._ordinary = ordinary
        self._named = {place: tuple(texts) for place, texts in named.items()}
        self._pools: dict[tuple[str, str], list[Any]] = {}
        self._sizes = sorted(
            {max(0, n + d) for n in reads.integers for d in (-1, 0, 1) if 0 <= n <= _LONGEST}
        )
        self._sizes = self._sizes[:_MOST_SIZES]
        self._resources = () if reads.keys else _resources(reads)
        self._keys = tuple(dict.fromkeys((*reads.keys, *(reads.texts if reads.any_key else ()))))
        self._texts = list(dict.fromkeys(self._all_texts()))
        self._numbers = list(self._all_numbers())

    def value(self, rng: Draws, root: str, path: str, kind: Type) -> Any:
        """A value of a fact."""
        if kind.name == "list":
            return self._list(rng, root, path, kind.params[0])
        if kind.name == "map":
            return self._map(rng, root, path, kind)
        pool = self._pools.get((root, path))
        if pool is None:
            pool = self._pools[root, path] = list(self._pool(root, path, kind))
        if pool and (self._ordinary or rng.share() < 0.85):
            # What stands first in a pool is what the expressions name.
            return pool[min(rng.below(len(pool)), rng.below(len(pool)))]
        return self._any(rng, root, path, kind)

    def drawn(self, rng: Draws, record: str, left_out: float = _LEFT_OUT) -> dict[str, Any]:
        """An element of a list of records, with some of what the expressions read of it: all but so large a share."""
        said: dict[str, Any] = {}
        for known, path in self.reads.elements:
            fact = fact_at(record, path) if known == record else None
            if fact is None or rng.share() < left_out:
                continue
            if not (fact.may_be_missing and rng.share() < 0.25):
                said[path] = self.value(rng, record, path, fact.type)
        return element(record, said)

    def _list(self, rng: Draws, root: str, path: str, kind: Type) -> list[Any]:
        count = rng.choice((0, 1, 1, 1, 2, 2, 3))
        if self._sizes and rng.share() < 0.15:
            count = rng.choice(self._sizes)
        distinct = min(count, 4)
        if kind.record is not None:
            # Containers that all request nothing are a case of their own.
            left_out = _NEARLY_ALL if rng.share() < 0.15 else _LEFT_OUT
            made = [self.drawn(rng, kind.record, left_out) for _ in range(distinct)]
        else:
            made = [self.value(rng, root, path + "[]", kind) for _ in range(distinct)]
        return made + [made[-1]] * (count - distinct) if made else made

    def _map(self, rng: Draws, root: str, path: str, kind: Type) -> dict[Any, Any]:
        named = self._resources if kind.params[1].is_number else self._keys
        keys = [key for key in named or self._keys if rng.share() < 0.6]
        if rng.share() < 0.1:
            keys.append(rng.choice(self._texts))
        if self._sizes and rng.share() < 0.05:
            keys += [f"key-{n}" for n in range(rng.choice(self._sizes))]
            plain = self.value(rng, root, path + "[]", kind.params[1])
            return dict.fromkeys(keys, plain)
        return {key: self.value(rng, root, path + "[]", kind.params[1]) for key in keys}

    def _pool(self, root: str, path: str, kind: Type) -> Iterator[Any]:
        plain = path.removesuffix("[]")
        match kind.name:
            case "bool":
                yield from (True, False)
            case "int" | "uint":
                low, high = bounds_of(root, plain, kind)
                made = UInt if kind.name == "uint" else int
                common = _USUAL.get(kind.unit, _USUAL[None])
                if self._ordinary:
                    low, high = max(low, 0), min(high, 2 * max(common))
                numbers = (*self._numbers, *common, *_SIGNED)
                if self._ordinary:
                    least = _LEAST.get(kind.unit, 0)
                    numbers = tuple(number for number in numbers if number == 0 or number >= least)
                yield from (made(n) for n in dict.fromkeys(numbers) if low <= n <= high)
            case "double":
                low, high = bounds_of(root, plain, kind)
                yield from (n for n in self._floats() if low <= n <= high)
            case "string":
                choices = choices_of(root, plain)
                if choices:
                    yield from choices
                else:
                    usual = (
                        *self._named.get((record_of(root), plain), ()),
                        *USUAL_TEXTS.get((record_of(root), plain), ()),
                    )
                    words = dict.fromkeys((*self._texts[:20], *usual, *self._texts))
                    yield from sorted(filter(str.strip, words), key=_is_filler) if self._ordinary else words
            case "google.protobuf.Duration":
                low, high = bounds_of(root, plain, kind)
                yield from (Duration(n) for n in self._spans() if low <= n <= high)
            case "google.protobuf.Timestamp":
                yield from map(Timestamp, self._moments())

    def _any(self, rng: Draws, root: str, path: str, kind: Type) -> Any:
        """A value that nothing speaks of."""
        match kind.name:
            case "bool":
                return rng.share() < 0.5
            case "int" | "uint":
                low, high = bounds_of(root, path.removesuffix("[]"), kind)
                if rng.share() < 0.15:
                    number = rng.choice(_EXTREME)
                else:
                    number = rng.magnitude(12 if kind.unit is Unit.BYTES else 6)
                number = max(low, min(high, number))
                return UInt(max(0, number)) if kind.name == "uint" else number
            case "double":
                low, high = bounds_of(root, path.removesuffix("[]"), kind)
                return max(float(low), min(float(high), round(rng.within(-10, 200), 3)))
            case "string":
                choices = choices_of(root, path.removesuffix("[]"))
                return rng.choice(choices or self._texts)
            case "google.protobuf.Duration":
                return Duration(rng.between(0, 100_000) * NANOS)
            case "google.protobuf.Timestamp":
                return Timestamp(_BASE + rng.between(-400, 400) * _DAY + rng.between(0, 86_400) * NANOS)
        return None

    def _all_numbers(self) -> Iterator[int]:
        for step in (0, 1, -1):
            yield from (number + step for number in self.reads.integers)
        for number in self.reads.doubles:
            if abs(number) < 2**62:
                yield from (int(number), int(number) + 1)

    def _floats(self) -> Iterator[float]:
        for number in self.reads.doubles:
            yield from (number, number + 1, number - 1, number / 100, number * 100)
        yield from (float(number) for number in self._numbers)
        yield from _DOUBLES

    def _spans(self) -> Iterator[int]:
        for step in (0, 1, -1, NANOS, -NANOS):
            yield from (ns + step for ns in self.reads.durations)
        yield from (n * NANOS for n in self.reads.integers if abs(n) < 2**33)
        yield from (0, NANOS, 60 * NANOS, 3_600 * NANOS, _DAY)

    def _moments(self) -> Iterator[int]:
        for step in (0, 1, -1, NANOS, -NANOS):
            yield from (ns + step for ns in self.reads.moments)
        yield _BASE
        for ns in self.reads.durations:
            yield from (_BASE - ns, _BASE - ns + 1, _BASE - ns - 1)
        yield from (_BASE + hour * _DAY // 24 for hour in range(24))
        yield from (_BASE + n * _DAY + _DAY // 2 for n in range(1, 8))
        yield from (_BASE + n * 30 * _DAY for n in range(1, 13))
        yield from (_BASE + minute * 60 * NANOS for minute in range(1, 60, 7))

    def _all_texts(self) -> Iterator[str]:
        yield from self.reads.texts
        for affix in self.reads.affixes:
            yield from (affix, affix + "a", "a" + affix, "a" + affix + "b")
        # A text may have to begin with one and end with another, or to have it before its end.
        pairs = list(permutations(list(self.reads.affixes)[:_MOST_AFFIXES], 2))
        yield from (text for begin, end in pairs for text in (begin + end, begin + end + "a"))
        for pattern in self.reads.patterns:
            yield from (example_of(pattern, repeated) for repeated in (1, 2))
            yield from _as_long(pattern, self._sizes)
        yield from map(text_of_size, self._sizes)
        yield from (str(number) for number in list(self.reads.integers)[:8])
        yield from self.reads.keys
        yield from self._resources
        for texts in self._named.values():
            yield from texts
        yield from _TEXTS


_WORDS: Final = "web-frontend-of-the-shop-"


def text_of_size(size: int) -> str:
    """A text of so many characters that may be a name: words, cut where they end."""
    text = (_WORDS * (size // len(_WORDS) + 1))[:size]
    return f"{text[:-1]}s" if text.endswith("-") else text


def _is_filler(text: str) -> bool:
    """Whether a text has no letter: a number, or what stands between words."""
    return not any(map(str.isalpha, text))


def _resources(reads: Reads) -> tuple[str, ...]:
    """The keys of maps of amounts, where any is read."""
    kinds = (value_type_of(root, path) for root, path in reads.facts)
    amounts = any(kind is not None and kind.name == "map" and kind.params[1].is_number for kind in kinds)
    return _RESOURCES if amounts else ()


_CLASSES: Final = {"d": "7", "w": "a", "s": " ", "b": "", "D": "a", "W": "-", "S": "a"}


def example_of(pattern: str, repeated: int) -> str:
    """A text that a simple regular expression matches: classes give one member, repetitions so many."""
    made: list[str] = []
    at = 0
    text = pattern.strip("^$")
    while at < len(text):
        sign = text[at]
        if sign == "[":
            end = text.find("]", at + 1)
            members = text[at + 1 : end].lstrip("^")
            made.append("-" if text[at + 1 : at + 2] == "^" else members[:1])
            at = end if end > 0 else len(text)
        elif sign == "\\" and at + 1 < len(text):
            made.append(_CLASSES.get(text[at + 1], text[at + 1]))
            at += 1
        elif sign in "+*" and made:
            made.append(made[-1] * (repeated - 1))
        elif sign == "{":
            end = text.find("}", at)
            count = text[at + 1 : end].partition(",")[0]
            if made and count.isdigit():
                made.append(made[-1] * max(0, min(int(count), 64) - 1))
            at = end if end > 0 else len(text)
        elif sign == "|":
            break
        elif sign == ".":
            made.append("a")
        elif sign not in "?()":
            made.append(sign)
        at += 1
    return "".join(made)


def _as_long(pattern: str, sizes: Iterable[int]) -> Iterator[str]:
    """Texts that the expression matches and that have these sizes, as far as repetitions lead there."""
    short = len(example_of(pattern, 1))
    step = len(example_of(pattern, 2)) - short
    for size in sizes:
        if step > 0 and size > short and (size - short) % step == 0:
            yield example_of(pattern, 1 + (size - short) // step)


def value_type_of(root: str, path: str) -> Type | None:
    """The declared type of a fact or of a root that is one."""
    if not path:
        declared = ROOTS.get(root)
        return declared.type if declared is not None and declared.type.record is None else None
    fact = fact_at(root, path)
    return fact.type if fact is not None else None


def is_missable(root: str, path: str) -> bool:
    """Whether a fact can be absent from a record of its root that is there."""
    fact = fact_at(root, path)
    return fact is not None and fact.may_be_missing


def is_root_missable(root: str) -> bool:
    """Whether there may be no such object, as there is no pod before one is created."""
    declared = ROOTS.get(root.removeprefix(RAISED))
    return declared is not None and declared.may_be_missing


def leaves_of(root: str) -> tuple[str, ...]:
    """The paths of a root's record."""
    return tuple(fact.path for fact in FACTS.leaves(record_of(root)))
