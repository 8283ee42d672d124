"""cel-go, and Kubernetes' functions on cel-go: programs that are asked in batches and work beside us."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from koordpolicy.language.cel.types import DYN, TIMESTAMP, Type
from tests.differential.cases import Values
from tests.differential.deviations import program_outside
from tests.differential.engines import ROW_VARIABLES, Checked, trees
from tests.differential.libraries import IDS
from tests.differential.outcomes import Refused
from tests.differential.program import Program, Question
from tests.differential.wire import encoded
from tests.unit.language.cel.back.expressions import VARIABLES

_ENVIRONMENTS: Mapping[str, Mapping[str, Type]] = {
    **ROW_VARIABLES,
    "extended": {**{name: kind for name, (_, kind) in VARIABLES.items()}, "node": DYN, "pod": DYN, "x": DYN},
    "facts": {"node": DYN, "pod": DYN, "now": TIMESTAMP},
}
PARTS = {"cel-go": False, "kubernetes-cel": True}
"""Names of the programs, and whether each has Kubernetes' libraries."""


class Referee:
    """One of the programs, at a path. `ask` and `answers` alternate."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._overloads = IDS[PARTS[name]]
        self._program = Program(path, _ENVIRONMENTS)
        self._rows: dict[tuple[str, int], tuple[Values, str]] = {}

    def outside(self, one: Checked) -> str | None:
        """Why a case is not put to this referee; None when it is."""
        if PARTS[self.name] is not (one.case.family == "kubernetes"):
            return "another family"
        return program_outside(one.node, self._overloads)

    def ask(self, cases: Sequence[Checked]) -> None:
        """Hand in a batch."""
        self._program.send(
            [
                Question(one.case.family, one.case.text, [self._row(one, row) for row in one.case.rows])
                for one in cases
            ]
        )

    def answers(self) -> list[Refused | list[Any]]:
        """The answers to the batch."""
        return self._program.receive()

    def close(self) -> None:
        """End the program."""
        self._program.close()

    def _row(self, one: Checked, row: Values) -> str:
        """The values of a row as JSON. Rows come from a pool, so each is written once."""
        key = (one.case.family, id(row))
        if key not in self._rows:
            self._rows[key] = (row, json.dumps(encoded(trees(one, row, times=True))))
        return self._rows[key][1]
