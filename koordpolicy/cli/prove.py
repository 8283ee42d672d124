"""`koordpolicy prove`: what must hold whatever a cluster does, and an input where it does not."""

import argparse
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from koordpolicy.cli.bundle import compile_paths
from koordpolicy.cli.command import CANNOT_RUN, FINDINGS, GAVE_UP, OK, CannotRunError
from koordpolicy.cli.proofs import kept_proofs
from koordpolicy.cli.revisions import compiled_side, sides
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text, safe
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.diagnostics.render import render
from koordpolicy.graph import Compilation, RuleGraph
from koordpolicy.graph.describe.layout import place
from koordpolicy.graph.proof import Counterexample, GaveUp, ProofBudget
from koordpolicy.graph.proof.examples import telling
from koordpolicy.graph.proof.judging import JudgedInvariant, judge


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Judge Invariants; FINDINGS where one is violated, GAVE_UP where one is open."""
    if min(arguments.inputs, arguments.work) < 1:
        raise CannotRunError("a budget is at least 1")
    before, compilation = _revisions(arguments)
    if compilation.graph is None:
        terminal.print(render("text", compilation.found, compilation.sources, width=terminal.width))
        return CANNOT_RUN
    chosen = [one for one in compilation.invariants if not arguments.names or one.name in arguments.names]
    _demand(arguments.names, [one.name for one in compilation.invariants])
    budget = ProofBudget(arguments.inputs, arguments.work)
    with kept_proofs() as proofs:
        judged = list(judge(compilation.graph, chosen, budget, proofs, before))
    left = [one.name for one in chosen if one.compares and before is None]
    if arguments.output == "json":
        terminal.print(json_text([_plain(one) for one in judged], indent=2))
    else:
        for line in _lines(judged, left, terminal.width):
            terminal.print(line)
    if any(isinstance(one.verdict, Counterexample) for one in judged):
        return FINDINGS
    return GAVE_UP if any(isinstance(one.verdict, GaveUp) for one in judged) else OK


def _revisions(arguments: argparse.Namespace) -> tuple[RuleGraph | None, Compilation]:
    if arguments.since is None:
        return None, compile_paths(arguments.policies or ["."], arguments.compiler)
    # A directory is compared with a directory, a revision of Git with the working tree.
    folder = Path(arguments.since).is_dir()
    old, new = sides(
        arguments.since,
        (arguments.policies or ["."])[0] if folder else None,
        [] if folder else arguments.policies,
    )
    return compiled_side(old, arguments.compiler).graph, compiled_side(new, arguments.compiler)


def _demand(names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            close = nearest(name, known)
            raise CannotRunError(
                f"there is no Invariant `{name}`" + (f"; did you mean `{close}`?" if close else "")
            )


def _word(one: JudgedInvariant) -> str:
    match one.verdict:
        case Counterexample():
            return "violated"
        case GaveUp():
            return "gave up"
    return "proved"


def _plain(one: JudgedInvariant) -> dict[str, Any]:
    start = one.invariant.span.start
    return {
        "name": one.invariant.name,
        "answer": _word(one),
        "requires": one.invariant.text,
        "decisions": {name: str(key) for name, key in one.invariant.decisions.items()},
        "facts": dict(one.facts),
        "values": dict(one.values),
        "failed": one.failed or None,
        "unanswered": list(one.unanswered),
        "why": one.verdict.why if isinstance(one.verdict, GaveUp) else None,
        "file": one.invariant.span.file,
        "line": start.line,
        "column": start.column,
    }


def _lines(judged: Sequence[JudgedInvariant], left: Sequence[str], width: int) -> Iterator[str]:
    for one in judged:
        yield f"{_word(one):<9} {safe(one.invariant.name)}"
        if one.invariant.meaning:
            yield from _wrapped(one.invariant.meaning, width)
        yield from _wrapped(one.invariant.text, width)
        if isinstance(one.verdict, Counterexample):
            if one.failed:
                yield from _wrapped(one.failed, width)
            yield from _wrapped(", ".join(f"{name} is {value}" for name, value in one.values.items()), width)
            yield from _wrapped("with " + ", ".join(telling(one.facts)), width)
            yield f"          {safe(place(one.invariant.span))}"
        elif isinstance(one.verdict, GaveUp):
            yield from _wrapped(f"no input was found that violates it; {one.verdict.why}", width)
        elif one.idle:
            yield from _wrapped("of nothing: no input that there can be meets `where`", width)
        elif nothing := one.unanswered:
            names = ", ".join(f"decisions.{name}" for name in nothing)
            yield from _wrapped(f"of nothing: {names} has no answer on any input tried", width)
    if left:
        yield from textwrap.wrap(f"not asked without --since: {', '.join(left)}", width)
    if not judged and not left:
        yield "there is no Invariant"


def _wrapped(text: str, width: int) -> Iterator[str]:
    indent = " " * 10
    yield from textwrap.wrap(
        safe(text), width, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )
