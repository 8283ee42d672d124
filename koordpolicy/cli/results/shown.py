"""What the renderers of test results are given."""

from collections.abc import Mapping
from dataclasses import dataclass

from koordpolicy.diagnostics import Span
from koordpolicy.graph.mutation.score import Score
from koordpolicy.graph.testing import Results


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run and how much of it to show.

    `sources` are the texts of the files by path. `verbose` lists the cases that passed too, `coverage` the
    branches that no case took, `mutation` what became of mutants, where that was asked for. `width` is in columns, `colour` for text alone.
    """

    run: Results
    sources: Mapping[str, str]
    width: int = 80
    colour: bool = False
    verbose: bool = False
    coverage: bool = False
    mutation: Score | None = None


def place(span: Span) -> str:
    """`file:line:column`."""
    return f"{span.file}:{span.start.line}:{span.start.column}"
