"""Test results for a person: a block for each case that failed, then what was counted."""

import textwrap
from collections.abc import Iterator
from dataclasses import replace

from koordpolicy.cli.results.mutants import mutation_lines
from koordpolicy.cli.results.shown import ShownRun, place
from koordpolicy.diagnostics.escaping import safe
from koordpolicy.diagnostics.render import render
from koordpolicy.graph.describe.layout import expression
from koordpolicy.graph.notation import show
from koordpolicy.graph.testing.coverage import Coverage, Share
from koordpolicy.graph.testing.findings import actual_text, expected_text, facts_of
from koordpolicy.graph.testing.results import CaseResult, Outcome

_RED, _GREEN, _BOLD, _DIM = "1;31", "32", "1", "2"
_LABEL = 10
_MOST_TEXT_LINES = 6
_MOST_PASSED_OVER = 3


def render_text(shown: ShownRun) -> str:
    """Every case that did not pass, findings about the tests themselves, and the totals."""
    return "\n".join(_Text(shown).lines()) + "\n"


class _Text:
    """A run on its way to lines."""

    def __init__(self, shown: ShownRun) -> None:
        self.shown = shown

    def lines(self) -> Iterator[str]:
        for case in self.shown.run.cases:
            if not all(outcome.passed for outcome in case.outcomes):
                yield from self._failed(case)
            elif self.shown.verbose:
                word = self._paint("ok  ", _GREEN) if case.passed else self._paint("FAIL", _RED)
                yield f"{word} {safe(case.suite)}: {safe(case.name)}"
        problems = [found for found in self.shown.run.found if found.code != "KP501"]
        if self.shown.coverage:  # which lists all the branches of which KP504 names some
            problems = [replace(found, notes=()) if found.code == "KP504" else found for found in problems]
        if problems:
            text = render(
                "text", problems, self.shown.sources, colour=self.shown.colour, width=self.shown.width
            )
            yield text.rsplit("\n\n", 1)[0] + "\n"  # the count of findings is told with that of the cases
        if self.shown.coverage and self.shown.run.coverage is not None:
            yield from self._coverage(self.shown.run.coverage)
        if self.shown.mutation is not None:
            yield from mutation_lines(self.shown.mutation, self.shown.width)
        yield self._summary()

    def _failed(self, case: CaseResult) -> Iterator[str]:
        yield from self._wrapped(
            f"{self._paint('FAIL', _RED)} ", f"{case.suite}: {case.name}", indent=5, style=_BOLD
        )
        for outcome in case.outcomes:
            if not outcome.passed:
                yield f"  {place(outcome.expectation.span)}"
                yield from self._outcome(outcome)
        yield ""

    def _outcome(self, outcome: Outcome) -> Iterator[str]:
        yield f"  {safe(outcome.expectation.decision)}"
        expected = expected_text(outcome)
        if outcome.expectation.tolerance is not None:
            expected += f" ± {outcome.expectation.tolerance}"
        yield from self._labelled("expected", expected)
        yield from self._labelled("actual", actual_text(outcome), style=_RED)
        refs = outcome.answer.provenance.rules
        if not refs:
            if outcome.answer.error is None:
                yield from self._labelled("decided by", "no rule; the default holds")
            for rule in outcome.passed_over[:_MOST_PASSED_OVER]:
                yield from self._labelled("not by", f"{rule.document}, which does not apply here")
                yield from self._labelled("", place(rule.span))
        else:
            yield from self._labelled("decided by", refs[0].document)
            yield from self._labelled("", place(refs[0].span))
            lines = list(expression(refs[0].text, self.shown.width, _LABEL + 6))
            if len(lines) > _MOST_TEXT_LINES:
                lines[_MOST_TEXT_LINES - 1 :] = [" " * (_LABEL + 6) + "| ..."]
            for line in lines:
                yield self._paint(line, _DIM)
        yield from self._table("where", [(f"{name} = {value}", "") for name, value in outcome.variables])
        yield from self._parameters(outcome)
        yield from self._facts(outcome)

    def _parameters(self, outcome: Outcome) -> Iterator[str]:
        places = {ref.decision: ref.span for ref in outcome.answer.provenance.rules}
        rows = [
            (name.rpartition(".parameters.")[2], show(type, value), place(places[name]))
            for name, (type, value) in outcome.parameters.items()
        ]
        yield from self._table("with", [(f"{name} = {value}", where) for name, value, where in rows])

    def _facts(self, outcome: Outcome) -> Iterator[str]:
        rows = []
        for fact in facts_of(outcome):
            unsaid = fact.present and fact.path in outcome.unsaid
            rows.append((f"{fact.path} = {fact.value}", "by default" if unsaid else ""))
        yield from self._table("facts", rows)

    def _table(self, label: str, rows: list[tuple[str, str]]) -> Iterator[str]:
        """Rows under a label; the second column beside the first where both fit, else below it."""
        width = max((len(left) for left, _ in rows), default=0)
        room = self.shown.width - _LABEL - 6
        beside = all(width + 2 + len(right) <= room for _, right in rows)
        for left, right in rows:
            text = f"{left:<{width}}  {right}".rstrip() if beside else left
            yield from self._labelled(label, text)
            label = ""
            if right and not beside:
                yield from self._labelled("", f"  {right}")

    def _labelled(self, label: str, text: str, style: str = "") -> Iterator[str]:
        room = self.shown.width - _LABEL - 6
        parts = [text] if len(text) <= room else _cut(text, room)
        for number, part in enumerate(parts):
            yield f"    {label if number == 0 else '':<{_LABEL}}  " + self._paint(safe(part), style)

    def _wrapped(self, front: str, text: str, indent: int, style: str) -> Iterator[str]:
        for number, line in enumerate(textwrap.wrap(safe(text), self.shown.width - indent) or [""]):
            yield (front if number == 0 else " " * indent) + self._paint(line, style)

    def _coverage(self, coverage: Coverage) -> Iterator[str]:
        if coverage.kinds:
            width = max(len(kind) for kind in coverage.kinds)
            yield f"{'coverage':<{width}}  {'branches':>17}"
            for kind, share in coverage.kinds.items():
                yield f"{kind:<{width}}  {_share(share):>17}"
            yield ""
        missed = list(_missed(coverage))
        for where, lines in missed:
            yield where
            for line, text in lines:
                yield f"  {line:>8}  {text}"[: self.shown.width]
        if missed:
            yield ""

    def _summary(self) -> str:
        run = self.shown.run
        failed = sum(not case.passed for case in run.cases)
        passed = len(run.cases) - failed
        parts = [f"{passed} passed"]
        if failed:
            parts.append(self._paint(f"{failed} failed", _RED))
        if run.coverage is not None and run.coverage.cases:
            parts.append(f"branches covered {_share(run.coverage.branches)}")
        return ", ".join(parts)

    def _paint(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.shown.colour and style and text else text


def _missed(coverage: Coverage) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The branches that no case took, by file: place and what is said of it, one line for an expression not evaluated."""
    evaluated = {(one.document, one.path) for one, cases in coverage.cases.items() if cases}
    files: dict[str, dict[tuple[str, str], None]] = {}
    for one in coverage.missed:
        told = one.missed if (one.document, one.path) in evaluated else "never evaluated"
        where = f"{one.span.start.line}:{one.span.start.column}"
        files.setdefault(one.span.file, {})[where, f"{told}: {safe(one.text)}"] = None
    for file, lines in files.items():
        yield safe(file), list(lines)


def _cut(text: str, room: int) -> list[str]:
    return textwrap.wrap(text, room, break_on_hyphens=False) or [text]


def _share(share: Share) -> str:
    return f"{share.reached}/{share.all} ({share.percent:.0f} %)"
