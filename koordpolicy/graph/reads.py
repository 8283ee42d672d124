"""The facts behind an answer, in the words of policies: `node.capacity.cpu = 10`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from koordpolicy.graph.answer import Answer, FactRead
from koordpolicy.graph.notation import show
from koordpolicy.language.cel.types import DYN, Type
from koordpolicy.language.facts import FACTS, ROOTS, Fact

_MOST_ENTRIES = 20

MISSING = "missing"
"""What stands for the value of a fact that was not there."""


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A fact that an answer depends on; `value` is text, `present` false where there is none."""

    path: str
    value: str
    present: bool


def shown_facts(answer: Answer, roots: Iterable[str]) -> tuple[ShownFact, ...]:
    """The facts of these roots that the answer may have read, as policies write them.

    Facts of list elements (the pods of a node) are left out: their list stands for them.
    """
    known = frozenset(roots)
    reads = (read for read in answer.provenance.facts if read.path.partition(".")[0] in known)
    return tuple(_shown(read) for read in reads)


def fact_type(path: str) -> Type:
    """The declared type of `root.path`; dyn where nothing of that name is declared."""
    root, _, rest = path.partition(".")
    declared = ROOTS.get(root)
    if declared is None:
        return DYN
    fact = FACTS.resolve(declared.type.record or "", rest) if rest else None
    return fact.type if isinstance(fact, Fact) else declared.type


def _shown(read: FactRead) -> ShownFact:
    if not read.present:
        return ShownFact(read.path, MISSING, present=False)
    return ShownFact(read.path, shown_value(fact_type(read.path), read.value), present=True)


def shown_value(type: Type, value: object) -> str:
    """A value on one line; of records only what and how many they are."""
    element = type.params[0].record if type.name == "list" and type.params else None
    if element is not None and isinstance(value, list | tuple):
        return f"{len(value)} {_spoken(element)}{'' if len(value) == 1 else 's'}"
    if isinstance(value, Mapping) and len(value) > _MOST_ENTRIES:
        return f"{len(value)} entries"
    return f"the whole {type.record}" if type.record is not None else show(type, value)


def _spoken(record: str) -> str:
    """`hostApplication` as words."""
    return re.sub(r"(?<=[a-z])([A-Z])", r" \1", record).lower()
