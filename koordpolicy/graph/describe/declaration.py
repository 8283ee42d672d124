"""What the language declares: kinds, facts, functions."""

from collections.abc import Iterator

from koordpolicy.graph.describe.layout import labelled, paragraph, rows
from koordpolicy.graph.neutral import usual_value
from koordpolicy.graph.notation import show
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.facts import FACTS, ROOTS, Component, Fact, Group, Root
from koordpolicy.language.kinds import KINDS, Kind, slots, type_name
from koordpolicy.language.kinds.signatures import signatures


def describe_declaration(name: str, width: int = 80) -> str | None:
    """Text for a kind (`Overcommit`), a fact or group of facts (`node.usage`), or a function; None for neither."""
    kind = KINDS.get(name)
    if kind is not None:
        return "\n".join(_kind(kind, width)) + "\n"
    root, _, path = name.partition(".")
    declared = ROOTS.get(root)
    if declared is not None and not path:
        return "\n".join(_root(declared, width)) + "\n"
    record = declared.type.record if declared is not None else root if root in FACTS.records else None
    found = FACTS.resolve(record, path) if record else None
    if isinstance(found, Fact):
        return "\n".join(_fact(name, found, width)) + "\n"
    if isinstance(found, Group):
        return "\n".join([name, *_facts(found.record, found.path, width)]) + "\n"
    function = FUNCTIONS.get(name)
    return "\n".join(_function(function, width)) + "\n" if function is not None else None


def _kind(kind: Kind, width: int) -> Iterator[str]:
    yield kind.name
    yield from paragraph(kind.summary, width, 2)
    yield ""
    yield from labelled("asked by", ", ".join(sorted(kind.components)) or "the compiler", width)
    yield from labelled(
        "may read", ", ".join(root for root in ROOTS if root in kind.roots) or "no facts", width
    )
    declared = list(slots(kind.spec))
    if declared:
        yield ""
        yield "decides"
        yield from rows(
            ((path.field, f"{type_name(path.slot.type)}: {path.slot.meaning}") for path in declared),
            width,
            most=24,
        )
    yield ""
    yield f"`koordpolicy schema {kind.name}` has all its keys."


def _root(root: Root, width: int) -> Iterator[str]:
    yield root.name
    yield from paragraph(root.meaning, width, 2)
    yield ""
    yield from labelled("type", type_name(root.type), width, 2, 15)
    yield from labelled("supplied by", suppliers(root.suppliers), width, 2, 15)
    if root.may_be_missing:
        yield from labelled("missing", "now and then: guard it with `has()`", width, 2, 15)
    if root.type.record is not None:
        yield ""
        yield from _facts(root.type.record, "", width)


def _fact(name: str, fact: Fact, width: int) -> Iterator[str]:
    yield name
    yield from paragraph(fact.meaning, width, 2)
    yield ""
    yield from labelled("type", type_name(fact.type), width, 2, 15)
    yield from labelled("supplied by", suppliers(fact.suppliers), width, 2, 15)
    if fact.may_be_missing:
        prefix, _, last = name.rpartition(".")
        advice = f"yes: guard it with `has({name})` or `{prefix}.?{last}.orValue(...)`"
        yield from labelled("missing", advice, width, 2, 15)
    usual = "missing" if fact.may_be_missing else show(fact.type, usual_value(fact)) or "no text"
    yield from labelled("in tests", f"{usual}, where a test does not say it", width, 2, 15)
    element = fact.type.params[0].record if fact.type.params else None
    if element is not None:
        yield ""
        yield f"Each {element} of it has:"
        yield from _facts(element, "", width)


def _facts(record: str, prefix: str, width: int) -> Iterator[str]:
    inside = prefix + "." if prefix else ""
    pairs = (
        (fact.path.removeprefix(inside), f"{type_name(fact.type)}: {fact.meaning}")
        for fact in FACTS.leaves(record, prefix)
    )
    yield from rows(pairs, width, most=28)


def _function(function: Function, width: int) -> Iterator[str]:
    yield function.name
    yield from paragraph(function.summary, width, 2)
    yield ""
    lines, meant = signatures(function)
    for line in lines:
        yield f"  {line}"
    if meant:
        yield from paragraph(f"where {meant}", width, 2)
    if function.example:
        yield from labelled("example", function.example, width)


def suppliers(components: frozenset[Component]) -> str:
    """The components by name, or all of them."""
    if components == frozenset(Component):
        return "every component"
    return ", ".join(component for component in Component if component in components)
