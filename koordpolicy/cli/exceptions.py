"""The PolicyExceptions of a bundle, told below the findings of a check."""

import textwrap
from collections.abc import Iterable, Iterator

from koordpolicy.graph.exceptions import exceptions_of, spoken_days
from koordpolicy.graph.state import Unit
from koordpolicy.graph.terms import Terms
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.language.kinds.exceptions import PolicyExceptionSpec

_INDENT = "    "


def told_exceptions(units: Iterable[Unit], moment: Timestamp, width: int) -> Iterator[str]:
    """Lines on the exceptions in force and those to come, the first to end first; nothing where there are none."""
    known = [(unit, terms) for unit, terms in exceptions_of(units) if moment < terms.ends]
    for title, group in (
        ("exceptions in force", [pair for pair in known if pair[1].holds(moment)]),
        ("exceptions to come", [pair for pair in known if not pair[1].holds(moment)]),
    ):
        if group:
            yield title
            for unit, terms in group:
                yield from _one(unit, terms, moment, width)
            yield ""


def _one(unit: Unit, terms: Terms, moment: Timestamp, width: int) -> Iterator[str]:
    assert isinstance(unit.spec, PolicyExceptionSpec)
    left = spoken_days(terms.ends.ns - moment.ns)
    since = f"from {unit.spec.from_} " if terms.begins is not None and moment < terms.begins else ""
    yield f"  {unit.document.name}: {since}until {terms.until} ({left} left), {terms.owner}"
    for text in (terms.reason, "overrides " + ", ".join(unit.spec.overrides)):
        yield from textwrap.wrap(
            " ".join(text.split()),
            width,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_on_hyphens=False,
        )
