"""CEL: texts through the parser, the checker, folding and both kinds of programs, on facts of nodes."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from koordpolicy.language.cel.checker import check
from koordpolicy.language.cel.cost import estimate
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.lower.columns import compile_columns
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.syntax import MAX_SOURCE, SyntaxProblem
from koordpolicy.language.cel.unparse import unparse
from koordpolicy.language.kinds.bundle import Budgets
from koordpolicy.model.table import NodeTable
from tests.differential.cases import Source
from tests.fuzz.mutations import mutate_text
from tests.fuzz.target import Defect, Target
from tests.fuzz.targets.yaml import policy_texts
from tests.unit.language.cel.columns.support import ENVIRONMENT, NOW, ROOT_NAMES, outcome, table_of

_WRITTEN = re.compile(r"(?:cel|expression|condition): *(.+)")
_DRAWN = 400
_BUDGET = Budgets().cost_per_decision

_POD = {
    "name": "p", "namespace": "default", "labels": {"app": "a", "é": ""}, "annotations": {"until": "2999-12-31T00:00:00Z", "n": "9" * 30},
    "priority": 5000, "containers": [],
}  # fmt: skip
_NODES: tuple[Mapping[str, Any], ...] = (
    {"name": "n0", "labels": {"pool": "a", "gpu": "yes"}, "capacity.cpu": 64_000, "capacity.memory": 1 << 38, "usage.total.cpu": 3_000, "pods": []},
    {"name": "n1", "labels": {}, "annotations": {"a": "1" * 5_000}, "capacity.cpu": 0},
    {},
)  # fmt: skip


@lru_cache(maxsize=1)
def _seeds() -> Sequence[bytes]:
    written = {
        found for text in policy_texts() for found in _WRITTEN.findall(text.decode("utf-8", "replace"))
    }
    source = Source(1)
    drawn = [case.text for case in (source.case() for _ in range(_DRAWN)) if case.family == "facts"]
    return tuple(text.encode() for text in (*sorted(written), *drawn))


@lru_cache(maxsize=1)
def _table() -> NodeTable:
    return table_of(_NODES)


def _run(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        tree = parse(text)
    except SyntaxProblem:
        return
    again = unparse(tree)
    if len(again) <= MAX_SOURCE and unparse(parse(again)) != again:
        raise Defect(f"written anew it reads otherwise: {again}")
    problems: list[object] = []
    node = check(tree, ENVIRONMENT, problems, text)  # type: ignore[arg-type]
    if problems:
        return
    folded = fold(node)
    if estimate(folded).maximum > _BUDGET:
        return
    row = compile_row(ROOT_NAMES, folded)
    try:
        columns = compile_columns(folded, "node", ROOT_NAMES)
        result = columns.call(_table(), {"pod": _POD, "now": NOW})
    except CelError:
        return
    for at, facts in enumerate(_NODES):
        kind, _ = outcome(row, facts, _POD, NOW)
        if (kind == "error") != (result.error(at) is not None):
            raise Defect(f"row {at}: {kind} by row, {result.error(at)} by column")


EXPRESSIONS = Target("cel", "expressions", _seeds, mutate_text, _run)
