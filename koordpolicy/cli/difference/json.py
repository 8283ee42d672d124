"""A difference as JSON, for programs. Values are written as in policies."""

from dataclasses import asdict
from typing import Any

from koordpolicy.cli.difference.shown import OnCluster, ShownDifference
from koordpolicy.diagnostics import Span
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph.diff import Affected, DecisionChange, Edit, Example, Moves, Open, Shift, Told
from koordpolicy.graph.notation import written
from koordpolicy.language.cel.values_time import format_timestamp


def render_json(shown: ShownDifference) -> str:
    """One object; lists are empty where nothing differs."""
    difference = shown.difference
    data: dict[str, Any] = {
        "from": {"name": shown.old, "digest": difference.old},
        "to": {"name": shown.new, "digest": difference.new},
        "different": not difference.empty,
        "decisions": [_decision(one) for one in difference.decisions],
        "settings": [
            {"document": one.document, "path": one.path, "old": one.old, "new": one.new, **_place(one.span)}
            for one in difference.settings
        ],
        "documents": [
            {"document": one.document, "change": str(one.how), **_place(one.span)}
            for one in difference.documents
        ],
        "renamed": [{"old": old, "new": new} for old, new in difference.renamed],
        "provedEqual": list(difference.equal),
        "gaveUp": [_open(one) for one in difference.open],
        "later": [
            {
                "from": format_timestamp(one.moment),
                "decisions": [_decision(change) for change in one.decisions],
                "gaveUp": [_open(left) for left in one.open],
            }
            for one in difference.later
        ],
    }
    if shown.cluster is not None:
        data["cluster"] = _cluster(shown.cluster)
    if shown.effect is not None:
        data["simulation"] = shown.effect.data
    return json_text(data, indent=2) + "\n"


def _open(left: Open) -> dict[str, Any]:
    return {"decision": left.decision, "why": left.why, "edits": [_edit(edit) for edit in left.edits]}


def _decision(change: DecisionChange) -> dict[str, Any]:
    return {
        "decision": change.decision,
        "meaning": change.meaning,
        "cause": change.cause or None,
        "edits": [_edit(one) for one in change.edits],
        "effects": [
            {
                "decision": one.decision,
                "example": _example(one.example),
                "also": None if one.also is None else _example(one.also),
            }
            for one in change.effects
        ],
    }


def _edit(edit: Edit) -> dict[str, Any]:
    return {
        "change": str(edit.how),
        "document": edit.document,
        "layer": edit.layer,
        "where": edit.where,
        "was": edit.was,
        "old": edit.old,
        "new": edit.new,
        **_place(edit.span),
        "example": None if edit.example is None else _example(edit.example),
        "also": None if edit.also is None else _example(edit.also),
        "gaveUp": edit.gave_up or None,
    }


def _example(example: Example) -> dict[str, Any]:
    return {
        "on": example.on,
        "given": dict(example.given),
        **_answers(example.old, example.new),
        "moves": None if example.moves is None else _moves(example.moves),
        "beyond": example.beyond or None,
    }


def _moves(moves: Moves) -> dict[str, Any]:
    return {
        "steps": [written(moves.type, step) for step in moves.steps],
        "percent": None if moves.shares is None else [round(share, 1) for share in moves.shares],
        "on": moves.on,
    }


def _answers(old: Told, new: Told) -> dict[str, Any]:
    return {"old": _answer(old), "new": _answer(new)}


def _answer(told: Told) -> dict[str, Any]:
    return {"error": told.error} if told.error is not None else {"value": written(told.type, told.value)}


def _cluster(cluster: OnCluster) -> dict[str, Any]:
    return {
        "file": cluster.file,
        "taken": cluster.taken,
        "nodes": cluster.nodes,
        "pods": cluster.pods,
        "decisions": [_affected(one) for one in cluster.affected],
        "later": [
            {
                "from": format_timestamp(later.moment),
                "decisions": [_affected(one) for one in later.affected],
            }
            for later in cluster.later
        ],
        "failedEvaluations": [
            {**asdict(one.rule), "inOld": one.old, "inNew": one.new} for one in cluster.failed
        ],
        "admission": None if cluster.admission is None else asdict(cluster.admission),
    }


def _affected(one: Affected) -> dict[str, Any]:
    data: dict[str, Any] = {
        "decision": one.decision,
        "of": one.things,
        "total": one.total,
        "changed": one.changed,
        "failing": one.failing,
        "why": one.why or None,
        "kinds": [
            {**_answers(shift.old, shift.new), "count": count, "names": list(names)}
            for shift, count, names in one.kinds
        ],
    }
    if one.old is not None and one.new is not None:
        data["together"] = _answers(Told(one.type, one.old), Told(one.type, one.new))
        data["largest"] = [_shift(shift) for shift in one.largest]
    return data


def _shift(shift: Shift) -> dict[str, Any]:
    return {"name": shift.name, **_answers(shift.old, shift.new)}


def _place(span: Span) -> dict[str, Any]:
    return {"file": span.file, "line": span.start.line, "column": span.start.column}
