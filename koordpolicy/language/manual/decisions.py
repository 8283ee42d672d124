"""The page of decisions: what is asked, by whom, and how several rules make one answer."""

from koordpolicy.language.cel.types import Type
from koordpolicy.language.kinds import KINDS, Combine, Kind, Slot, slots, type_name
from koordpolicy.language.kinds.actors import asked_by
from koordpolicy.language.manual.markdown import code, table

_COMBINATIONS = {
    Combine.OVERRIDE: "the rule of highest precedence wins, then that of the higher layer, then the narrowest match",
    Combine.LAYER: "field by field, from broad to narrow",
    Combine.ALL: "as `override`; the entries of a list, or the documents of a kind, must all agree",
    Combine.WEIGHTED: "weighted sum",
    Combine.ORDER: "a list of sort keys, the first deciding first",
    Combine.TIGHTEST: "the most restrictive value",
}

_INTRODUCTION = """# Decisions

A decision is written `Kind/subject.field`, or `Kind.field` where a kind has one subject only. Each document that
sets the field contributes a rule; the combination says how several rules make one answer. `[*]` stands for the
name of a list element or the key of a mapping, `parameters.*` for the parameters that documents declare.

"""


def decisions_page() -> str:
    """The page, ending with a line break."""
    head = _INTRODUCTION + table(
        ("combination", "meaning"), ((code(c), words) for c, words in _COMBINATIONS.items())
    )
    return "\n".join([head, *(_kind(kind) for kind in KINDS.values() if any(slots(kind.spec)))])


def _kind(kind: Kind) -> str:
    rows = [
        (
            code(path.field),
            _type(path.slot),
            path.slot.combine.value,
            _roots(kind, path.slot),
            path.slot.meaning,
        )
        for path in slots(kind.spec)
    ]
    return f"## {kind.name}\n\nAsked by: {asked_by(kind.components)}.\n\n" + table(
        ("field", "type", "combination", "may name", "meaning"), rows
    )


def _type(slot: Slot) -> str:
    types: tuple[Type, ...] = (slot.type, *slot.also)
    shown = " or ".join(type_name(one) for one in types)
    return f"list of {shown}" if slot.many else shown


def _roots(kind: Kind, slot: Slot) -> str:
    roots = kind.roots if slot.roots is None else slot.roots
    return ", ".join(sorted(roots)) or "constants only"
