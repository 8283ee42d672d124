"""Evaluations that failed, in words: what `simulate` and `diff` say at the top of their reports."""

from koordpolicy.graph.failed import FailedRule


def failure_text(one: FailedRule) -> str:
    """`the condition at FILE:LINE:COLUMN, on 3 of 20 pods`."""
    what = f"`{one.decision}`" if one.decision else "the condition"
    where = f" at {one.place}" if one.place else ""
    return f"{what}{where}, on {one.on:,} of {one.total:,} {one.things}"
