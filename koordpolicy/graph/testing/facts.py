"""What a test says of the facts: nested data as policy authors write it, by each fact's declared type."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from koordpolicy.diagnostics import Diagnostics, Span
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.analysis.facts import bounds_of, choices_of
from koordpolicy.graph.neutral import GONE, element
from koordpolicy.graph.notation import show
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import Duration
from koordpolicy.language.documents import Document
from koordpolicy.language.documents.document import Path
from koordpolicy.language.facts import FACTS, ROOTS, Fact, Group
from koordpolicy.language.kinds import BadLiteral, LiteralProblem, literal_value, type_name
from koordpolicy.language.kinds.literals import described

Said = Mapping[tuple[str, str], Any]
"""(root, path) -> run-time value, or `GONE` where the test says that there is none. A root that is a fact by
itself (`now`) has the path ""."""

_MOST_NAMES: Final = 12


def read_facts(raw: Mapping[str, Any], document: Document, path: Path, found: Diagnostics) -> Said:
    """The facts that stand at `path` of a document, as run-time values.

    Facts are nested (`node: {usage: {prod: {cpu: 4}}}`) or named by dotted paths (`usage.prod.cpu: 4`).
    Quantities are written as in any policy; `null` says that there is no value. What no fact is, or has
    the wrong type, is reported as KP503 at its place and left out.
    """
    return _Reader(document, found).roots(raw, path)


def laid_over(shared: Said, own: Said) -> Said:
    """Both together, `own` winning fact by fact; maps such as labels are joined key by key."""
    merged = dict(shared)
    for key, value in own.items():
        known = merged.get(key)
        joined = isinstance(value, Mapping) and isinstance(known, Mapping)
        merged[key] = {**known, **value} if joined else value  # type: ignore[dict-item]  # `joined` says so
    return merged


class _Reader:
    """Reads the facts of one place of one document."""

    def __init__(self, document: Document, found: Diagnostics) -> None:
        self.document = document
        self.found = found

    def roots(self, raw: Mapping[str, Any], path: Path) -> Said:
        said: dict[tuple[str, str], Any] = {}
        for name, value in raw.items():
            here = (*path, name)
            root = ROOTS.get(name)
            if root is None:
                self.report(
                    self.document.positions.key(here), f"there is no `{name}` to give facts of", _root(name)
                )
            elif root.type.record is None:
                known = GONE if value is None else self.value(root.type, value, here, name)
                if known is not None and self.can_be(name, "", root.type, known, here, name):
                    said[name, ""] = known
            else:
                facts = self.record(root.type.record, value, here, name)
                said.update(((name, at), known) for at, known in facts.items())
        return said

    def record(self, record: str, raw: Any, path: Path, shown: str, prefix: str = "") -> dict[str, Any]:
        """The facts of a record below a prefix, by path."""
        if raw is None:
            return {fact.path: GONE for fact in FACTS.leaves(record, prefix)}
        if not isinstance(raw, Mapping):
            names = _listed(FACTS.children(record, prefix))
            problem = f"`{shown}` is a group of facts, found {described(raw)}"
            self.report(self.value_place(path), problem, f"below it are {names}")
            return {}
        said: dict[str, Any] = {}
        for key, value in raw.items():
            at = f"{prefix}.{key}" if prefix else key
            said.update(self.entry(record, at, value, (*path, key), shown))
        return said

    def entry(self, record: str, at: str, raw: Any, path: Path, shown: str) -> dict[str, Any]:
        """What one key says: a fact, or a group with facts below it."""
        declared = FACTS.resolve(record, at)
        step = path[-1]
        name = f"{shown}.{step}"
        if isinstance(declared, Group):
            return self.record(record, raw, path, name, at)
        if isinstance(declared, Fact):
            known = GONE if raw is None else self.value(declared.type, raw, path, name)
            if known is None or not self.can_be(record, at, declared.type, known, path, name):
                return {}
            return {at: known}
        self.report(
            self.document.positions.key(path), f"there is no fact `{name}`", _fact(record, at, str(step))
        )
        return {}

    def can_be(self, record: str, at: str, type: Type, known: Any, path: Path, shown: str) -> bool:
        """Whether a fact can have a value: reported where no reader of objects would let it through."""
        values = (
            known.values() if isinstance(known, Mapping) else known if isinstance(known, list) else [known]
        )
        while type.params:
            type = type.params[-1]
        low, high = bounds_of(record, at, type)
        choices = choices_of(record, at)
        for value in values:
            number = value.ns if isinstance(value, Duration) else value
            if isinstance(number, int | float) and not isinstance(number, bool) and not low <= number <= high:
                bound = low if number < low else high
                end = Duration(bound) if isinstance(value, Duration) else bound
                why = f"it is at {'least' if number < low else 'most'} `{show(type, end)}`"
            elif choices and isinstance(value, str) and value not in choices:
                why = f"it is {_listed(choices)}"
            else:
                continue
            self.report(self.value_place(path), f"`{shown}` is never `{show(type, value)}`", why)
            return False
        return True

    def value(self, type: Type, raw: Any, path: Path, shown: str) -> Any:
        """A fact's run-time value; None after a finding."""
        if type.name == "list" and type.params[0].record is not None:
            return self.elements(type.params[0].record, raw, path, shown)
        if type.name == "map" and isinstance(raw, Mapping):
            entries = {key: self.map_entry(type, key, item, (*path, key), shown) for key, item in raw.items()}
            return {key: item for key, item in entries.items() if item is not None}
        return self.literal(type, raw, path, shown, None)

    def map_entry(self, type: Type, key: str, raw: Any, path: Path, shown: str) -> Any:
        return GONE if raw is None else self.literal(type.params[1], raw, path, f"{shown}[{key}]", key)

    def elements(self, record: str, raw: Any, path: Path, shown: str) -> Any:
        """A list of records, such as the pods of a node; what they do not say they have as any other."""
        if not isinstance(raw, list):
            self.report(
                self.value_place(path),
                f"`{shown}` is a list, found {described(raw)}",
                f"write a list of {record}s",
            )
            return None
        return [
            element(record, self.record(record, item, (*path, at), f"{shown}[{at}]"))
            for at, item in enumerate(raw)
            if item is not None
        ]

    def literal(self, type: Type, raw: Any, path: Path, shown: str, resource: str | None) -> Any:
        try:
            return literal_value(type, raw, resource)
        except BadLiteral as bad:
            self.refuse(type, bad.problem, path, shown)
            return None

    def refuse(self, type: Type, problem: LiteralProblem, path: Path, shown: str) -> None:
        place = self.value_place((*path, *problem.path))
        self.report(place, f"`{shown}` has the type `{type_name(type)}`: {problem.message}", problem.help)

    def value_place(self, path: Path) -> Span:
        """The value, or its key where the value is nothing or goes over several lines."""
        span = self.document.positions.value(path)
        return self.document.positions.key(path) if span.start.line != span.end.line else span

    def report(self, span: Span, message: str, help: str | None) -> None:
        self.found.add("KP503", span, message, help=help)


def _root(name: str) -> str:
    close = nearest(name, ROOTS) or next((root for root in ROOTS if root.startswith(name)), None)
    return f"did you mean `{close}`?" if close else f"facts begin with {_listed(ROOTS)}"


def _fact(record: str, at: str, step: str) -> str:
    """The fact that was probably meant: beside it, or of the same name elsewhere in the record."""
    prefix, _, _ = at.rpartition(".")
    while prefix and not FACTS.children(record, prefix):
        prefix = prefix.rpartition(".")[0]
    beside = FACTS.children(record, prefix)
    rest = at[len(prefix) :].lstrip(".")
    paths = [fact.path for fact in FACTS.leaves(record)]
    close = nearest(step, beside) or nearest(rest, beside) or nearest(at, paths)
    if close:
        return f"did you mean `{close}`?"
    elsewhere = [path for path in paths if path.rpartition(".")[2] == step]
    if elsewhere:
        return f"there is {_listed(elsewhere)}"
    return f"facts here are {_listed(beside)}"


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    shown = ", ".join(f"`{name}`" for name in known[:_MOST_NAMES])
    return f"{shown} and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else shown
