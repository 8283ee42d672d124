"""Test results for programs: one JSON object that leaves nothing out."""

from typing import Any

from koordpolicy import __version__
from koordpolicy.cli.results.shown import ShownRun
from koordpolicy.diagnostics import Diagnostic, Span
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph.mutation.score import Fate, Score
from koordpolicy.graph.notation import written
from koordpolicy.graph.testing.coverage import Coverage, Share
from koordpolicy.graph.testing.findings import facts_of
from koordpolicy.graph.testing.results import CaseResult, Failure, Outcome

FORMAT_VERSION = 1


def render_json(shown: ShownRun) -> str:
    """`cases` with their outcomes in order, `counts`, `findings` about the tests themselves, `mutation`, `coverage`.

    Values are written as in policies; an expected failure is `{"error": text}`. Lines and columns count from 1.
    """
    run = shown.run
    failed = sum(not case.passed for case in run.cases)
    document = {
        "formatVersion": FORMAT_VERSION,
        "tool": {"name": "koordpolicy", "version": __version__},
        "counts": {"passed": len(run.cases) - failed, "failed": failed},
        "cases": [_case(case) for case in run.cases],
        "findings": [_finding(found) for found in run.found if found.code != "KP501"],
        "mutation": None if shown.mutation is None else _mutation(shown.mutation),
        "coverage": None if run.coverage is None else _coverage(run.coverage),
    }
    return json_text(document, indent=2, only_ascii=True) + "\n"


def _case(case: CaseResult) -> dict[str, Any]:
    return {
        "test": case.suite,
        "case": case.name,
        **_place(case.span),
        "passed": case.passed,
        "outcomes": [_outcome(outcome) for outcome in case.outcomes],
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    one, answer = outcome.expectation, outcome.answer
    failed = answer.error is not None
    return {
        "decision": one.decision,
        **_place(one.span),
        "passed": outcome.passed,
        "expected": {"error": one.wanted.text} if isinstance(one.wanted, Failure) else one.wanted,
        "tolerance": one.tolerance,
        "actual": {"error": str(answer.error)} if failed else written(outcome.type, answer.value),
        "rules": [
            {"decision": ref.decision, "document": ref.document, "layer": ref.layer, **_place(ref.span)}
            for ref in answer.provenance.rules
        ],
        "facts": [
            {
                "fact": fact.path,
                "value": fact.value if fact.present else None,
                "said": fact.path not in outcome.unsaid,
            }
            for fact in facts_of(outcome)
        ],
    }


def _finding(found: Diagnostic) -> dict[str, Any]:
    return {
        "code": found.code,
        "severity": found.severity.value,
        "message": found.message,
        "help": found.help,
        **_place(found.span),
    }


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {
        "branches": _share(coverage.branches),
        "kinds": {kind: _share(share) for kind, share in coverage.kinds.items()},
        "places": [
            {
                **_place(branch.span),
                "document": branch.document,
                "kind": branch.kind.value,
                "outcome": branch.outcome.value,
                "text": branch.text,
                "cases": cases,
            }
            for branch, cases in coverage.cases.items()
        ],
    }


def _mutation(score: Score) -> dict[str, Any]:
    return {
        "percent": round(score.percent, 2),
        "counts": {fate.value: score.count(fate) for fate in Fate},
        "tried": len(score.fates),
        "all": score.all,
        "survivors": [
            {
                "id": mutant.id,
                **_place(mutant.span),
                "document": mutant.unit.id,
                "operator": mutant.operator.value,
                "before": mutant.before,
                "after": mutant.after,
                "reached": score.fates[mutant] is Fate.UNNOTICED,
                "noticedBy": mutant.noticed_by,
            }
            for mutant in score.survivors
        ],
    }


def _share(share: Share) -> dict[str, Any]:
    return {"reached": share.reached, "all": share.all, "percent": round(share.percent, 2)}


def _place(span: Span) -> dict[str, Any]:
    return {"file": span.file, "line": span.start.line, "column": span.start.column}
