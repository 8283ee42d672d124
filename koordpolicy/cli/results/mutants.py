"""What became of mutants, as text: the changes that no test notices, by file."""

import textwrap
from collections.abc import Iterator
from itertools import groupby

from koordpolicy.diagnostics.escaping import safe
from koordpolicy.graph.mutation.mutant import Mutant
from koordpolicy.graph.mutation.score import Fate, Score

_INDENT = 4


def mutation_lines(score: Score, width: int) -> Iterator[str]:
    """Each survivor with its place, what was changed and what would notice it, and the counts last."""
    for file, mutants in groupby(score.survivors, key=lambda one: one.file):
        yield safe(file)
        for mutant in mutants:
            yield from _survivor(mutant, score.fates[mutant], width)
        yield ""
    noticed = score.count(Fate.NOTICED)
    parts = [f"tests notice {noticed} of {score.counted} changes ({score.percent:.0f} %)"]
    if refused := score.count(Fate.REFUSED):
        parts.append(f"`check` refuses {refused}")
    if equal := score.count(Fate.EQUAL):
        parts.append(f"{equal} mean{'s' if equal == 1 else ''} the same")
    if len(score.fates) < score.all:
        parts.append(f"{len(score.fates)} of {score.all} were tried")
    yield from textwrap.wrap(", ".join(parts), width)
    yield ""


def _survivor(mutant: Mutant, fate: Fate, width: int) -> Iterator[str]:
    place = f"  {mutant.span.start.line}:{mutant.span.start.column}  "
    change = safe(f"{mutant.before} → {mutant.after}")
    yield from textwrap.wrap(change, width, initial_indent=place, subsequent_indent=" " * (_INDENT + 2))
    reached = "" if fate is Fate.UNNOTICED else "no case evaluates it; "
    wanted = f"{reached}wanted: {mutant.noticed_by}"
    yield from textwrap.wrap(
        wanted, width, initial_indent=" " * _INDENT, subsequent_indent=" " * (_INDENT + 2)
    )
