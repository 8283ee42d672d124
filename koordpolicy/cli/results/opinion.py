"""What the referee found, for a person."""

from collections.abc import Iterator

from koordpolicy.cli.results.shown import place
from koordpolicy.diagnostics.escaping import safe
from koordpolicy.graph.testing.referee import Opinion


def opinion_text(opinion: Opinion) -> str:
    """A block for each disagreement, then what was compared and what was skipped for which reason."""
    return "\n".join(_lines(opinion)) + "\n"


def _lines(opinion: Opinion) -> Iterator[str]:
    for one in opinion.disagreements:
        yield f"cel-python disagrees: {place(one.span)}"
        yield f"  in the case {safe(one.case)}"
        yield from (f"    | {safe(line)}" for line in one.text.splitlines())
        yield f"  koordpolicy  {safe(one.ours)}"
        yield f"  cel-python   {safe(one.theirs)}"
        yield ""
    yield (
        f"cel-python: {opinion.expressions} expressions compared on {opinion.evaluations} inputs, "
        f"{len(opinion.disagreements)} disagreements, {opinion.skipped.total()} skipped"
    )
    for reason, count in opinion.skipped.most_common():
        yield f"  {count:>5}  {reason}"
