"""The page of facts: everything that an expression may name."""

from koordpolicy.language.facts import FACTS, ROOTS, Component, Record
from koordpolicy.language.kinds import type_name
from koordpolicy.language.manual.markdown import code, table

_INTRODUCTION = """# Facts

An expression begins with one of the names below, or with `variables`, `parameters` or `constants`. A fact that
may be missing is absent, never zero: guard it with `has(node.usage.prod.cpu)` or `node.usage.prod.?cpu`. CPU is
counted in millicores, memory in bytes, percent in points; units are checked. The runtime proxy, which some are
supplied by, is a component to come: nothing runs it yet.

"""


def facts_page() -> str:
    """The page, ending with a line break."""
    roots = table(
        ("name", "type", "supplied by", "may be missing", "meaning"),
        (
            (
                code(root.name),
                type_name(root.type),
                _suppliers(root.suppliers),
                "yes" if root.may_be_missing else "",
                root.meaning,
            )
            for root in ROOTS.values()
        ),
    )
    return "\n".join([_INTRODUCTION + roots, *(_record(record) for record in FACTS.records.values())])


def _record(record: Record) -> str:
    rows = [
        (
            code(fact.path),
            type_name(fact.type),
            _suppliers(fact.suppliers),
            "yes" if fact.may_be_missing else "",
            fact.meaning,
        )
        for fact in record.facts
    ]
    return f"## {record.name}\n\n{record.meaning}\n\n" + table(
        ("fact", "type", "supplied by", "may be missing", "meaning"), rows
    )


def _suppliers(components: frozenset[Component]) -> str:
    if components == frozenset(Component):
        return "all"
    return ", ".join(component for component in Component if component in components)
