"""A case: an expression with facts for it, drawn at random or kept as JSON."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from koordpolicy.language.cel.values import Duration, Timestamp, UInt
from tests.unit.language.cel.back import expressions as plain_expressions
from tests.unit.language.cel.back.expressions import ALL_VALUES, PLAIN_VALUES, STANDARD
from tests.unit.language.cel.columns import generators as fact_expressions
from tests.unit.language.cel.columns.generators import NODES, PODS

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """An expression of a family (standard, extended, facts: see `Source`) and several sets of values for its roots, a row each."""

    family: str
    text: str
    rows: tuple[Values, ...]


_STANDARD = ("int", "uint", "double", "bool", "string", "ints", "map")
_EXTENDED = ("int", "double", "bool", "string", "ints", "strings", "map", "cpu", "memory", "percent")

POOL = 200
"""So many sets of values of a kind are drawn, and put together with expressions at random."""


class Source:
    """An endless source of random cases, the same for the same seed."""

    def __init__(self, start: int) -> None:
        self._chance = random.Random(start)
        self._plain, self._all, self._nodes, self._pods = (
            _pool(values, start) for values in (PLAIN_VALUES, ALL_VALUES, NODES, PODS)
        )

    def case(self) -> Case:
        """The next one: of ten five standard, two extended, three over facts of nodes."""
        pick = self._chance.choice
        match self._chance.randrange(10):
            case 0 | 1 | 2 | 3 | 4:
                text = plain_expressions.write(pick, pick(_STANDARD), STANDARD)
                return Case("standard", text, tuple(pick(self._plain) for _ in range(3)))
            case 5 | 6:
                text = plain_expressions.write(pick, pick(_EXTENDED))
                return Case("extended", text, tuple(pick(self._all) for _ in range(2)))
        pod = pick(self._pods)
        text = fact_expressions.write(pick)
        return Case("facts", text, tuple({"node": pick(self._nodes), "pod": pod} for _ in range(4)))


def _pool(values: st.SearchStrategy[Any], start: int) -> list[Any]:
    drawn: list[Any] = []

    @seed(start)
    @settings(
        max_examples=POOL,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(values)
    def each(value: Any) -> None:
        drawn.append(value)

    each()
    return drawn


# --- as JSON ---------------------------------------------------------------------------------------


def to_json(case: Case, about: str) -> str:
    """The case as a file of `found/`; `about` says what was wrong."""
    data = {
        "about": about,
        "family": case.family,
        "text": case.text,
        "rows": [_encoded(row) for row in case.rows],
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> Case:
    data = json.loads(text)
    return Case(data["family"], data["text"], tuple(_decoded(row) for row in data["rows"]))


def _encoded(value: Any) -> Any:
    match value:
        case Duration():
            return {"$duration": value.ns}
        case Timestamp():
            return {"$timestamp": value.ns}
        case UInt():
            return {"$uint": int(value)}
        case float():
            return {"$double": repr(value)}
        case dict():
            return {key: _encoded(item) for key, item in value.items()}
        case list():
            return [_encoded(item) for item in value]
    return value


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "$duration": Duration,
    "$timestamp": Timestamp,
    "$uint": UInt,
    "$double": float,
}


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if isinstance(value, dict):
        for tag, made in _KINDS.items():
            if value.keys() == {tag}:
                return made(value[tag])
        return {key: _decoded(item) for key, item in value.items()}
    return value
