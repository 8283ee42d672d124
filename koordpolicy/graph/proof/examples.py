"""Inputs that show a condition to fail: found by the directed search alone, for findings that need no proof."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.classify import Catalogue
from koordpolicy.graph.analysis.facts import fact_at
from koordpolicy.graph.proof.draws import Draws
from koordpolicy.graph.proof.goal import Fails
from koordpolicy.graph.proof.pools import Pools
from koordpolicy.graph.proof.reads import reads_of
from koordpolicy.graph.proof.search import Search
from koordpolicy.graph.proof.solve import Named, simplified
from koordpolicy.graph.proof.verdict import Records
from koordpolicy.graph.reads import shown_value
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import text_of
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import Type
from koordpolicy.language.facts import ROOTS

_DRAWN: Final = 400
"""Inputs that are drawn where no everyday one will do."""


def failing_input(condition: ir.Node, named: Named, given: ir.Node | None = None) -> Records | None:
    """An input on which a condition is false, as ordinary as can be; None where none was found, which proves nothing.

    With `given` only inputs count on which that is true. The same question has the same answer.
    """
    roots = tuple(ROOTS)
    test = None if given is None else compile_row(roots, given)
    goal = Fails(condition, compile_row(roots, condition), given, test)
    reads = reads_of(goal.expressions)
    seed = "\n".join(map(str, (*reads.facts, *reads.integers, *map(text_of, reads.texts))))
    search = Search(goal, reads, Pools(reads, named), Draws(hashlib.sha256(seed.encode()).digest()))
    found = next(search.everyday(), None) or search.drawn(_DRAWN)
    return None if found is None else simplified(goal, found, search)


def texts_named_by(*catalogues: Catalogue) -> Named:
    """The names of classes and bands, where facts have them."""
    classes = tuple(dict.fromkeys(name for one in catalogues for name in one.classes))
    bands = tuple(dict.fromkeys(name for one in catalogues for name in one.bands))
    return {
        **dict.fromkeys((("pod", "qos"), ("pod", "qosLabel"), ("hostApplication", "qos")), (*classes, "")),
        **dict.fromkeys(
            (("pod", "band"), ("pod", "rawBand"), ("pod", "reported.band"), ("hostApplication", "band")),
            (*bands, ""),
        ),
    }


def facts_within(records: Records, *expressions: ir.Node) -> dict[str, tuple[Type, Any]]:
    """The facts of an input that expressions read, by name, with their types; those that are absent left out."""
    told: dict[str, tuple[Type, Any]] = {}
    for root, path in reads_of(expressions).facts:
        value = records.get(root)
        if path:
            fact = fact_at(root, path)
            if fact is not None and isinstance(value, Mapping) and path in value:
                told[f"{root}.{path}"] = (fact.type, value[path])
        elif value is not None:
            told[root] = (ROOTS[root].type, value)
    return told


def in_words(records: Records, *expressions: ir.Node) -> str:
    """The facts of an input that expressions read, as policies write them; empty ones and zeros say nothing."""
    shown = {
        name: shown_value(kind, value) for name, (kind, value) in facts_within(records, *expressions).items()
    }
    return ", ".join(telling(shown))


def telling(facts: Mapping[str, str]) -> list[str]:
    """Facts as policies write them; empty lists and maps say nothing."""
    shown = [f"{name} = {value}" for name, value in facts.items() if not value.startswith(("[]", "{}", "0 "))]
    return shown or ["any input"]
