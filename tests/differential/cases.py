"""A case: an expression with facts for it, drawn at random or kept as JSON."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.differential.language import Writer
from tests.differential.libraries import functions_of
from tests.differential.rows import row
from tests.differential.wire import decoded, encoded
from tests.unit.language.cel.back import expressions as plain_expressions
from tests.unit.language.cel.back.expressions import ALL_VALUES, PLAIN_VALUES, STANDARD
from tests.unit.language.cel.columns import generators as fact_expressions
from tests.unit.language.cel.columns.generators import NODES, PODS

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """An expression of a family (see `Source`) and several sets of values for its roots, a row each."""

    family: str
    text: str
    rows: tuple[Values, ...]


_STANDARD = ("int", "uint", "double", "bool", "string", "ints", "map")
_EXTENDED = ("int", "double", "bool", "string", "ints", "strings", "map", "cpu", "memory", "percent")

POOL = 200
"""So many sets of values of a kind are drawn, and put together with expressions at random."""

FAMILIES = ("standard", "extended", "facts", "library", "calls", "kubernetes", "kubernetes calls")
LIBRARY, KUBERNETES = functions_of(False), functions_of(True)


class Source:
    """An endless source of random cases of some families, the same for the same seed.

    `standard` has what every implementation knows, `extended` our units and facts as well, `facts` those of nodes;
    `library` is the whole of the language with the libraries of cel-go, `kubernetes` with those of Kubernetes, and
    `calls` are single calls of each function, one overload after another.
    """

    def __init__(self, start: int, families: Sequence[str] = FAMILIES) -> None:
        self._chance = random.Random(start)
        self._families = [family for family in families for _ in range(_SHARES[family])]
        self._pools: dict[str, list[Any]] = {}
        self._start = start
        self._writers = {name: Writer(self._chance, table) for name, table in _TABLES.items()}
        self._next = 0

    def case(self) -> Case:
        """The next one."""
        pick, family = self._chance.choice, self._chance.choice(self._families)
        match family:
            case "standard":
                text = plain_expressions.write(pick, pick(_STANDARD), STANDARD)
                return Case(family, text, tuple(pick(self._pool("plain")) for _ in range(3)))
            case "extended":
                text = plain_expressions.write(pick, pick(_EXTENDED))
                return Case(family, text, tuple(pick(self._pool("all")) for _ in range(2)))
            case "facts":
                pod = pick(self._pool("pods"))
                text = fact_expressions.write(pick)
                return Case(
                    family, text, tuple({"node": pick(self._pool("nodes")), "pod": pod} for _ in range(4))
                )
        writer, calls = self.writer(family), family.endswith("calls")
        name = "kubernetes" if family.startswith("kubernetes") else "library"
        self._next += 1
        text = writer.call(self._next % len(writer.calls)) if calls else writer.expression(pick((1, 2, 3, 3)))
        return Case(name, text, tuple(pick(self._pool("rows")) for _ in range(3)))

    def writer(self, family: str) -> Writer:
        """What writes the expressions of `library`, `kubernetes`, and the calls of each."""
        return self._writers["kubernetes" if family.startswith("kubernetes") else "library"]

    def _pool(self, name: str) -> list[Any]:
        if name not in self._pools:
            chance = random.Random(self._start)
            drawn = (
                [row(chance) for _ in range(POOL)] if name == "rows" else _drawn(_DRAWS[name], self._start)
            )
            self._pools[name] = drawn
        return self._pools[name]


_SHARES = {
    "standard": 2,
    "extended": 2,
    "facts": 2,
    "library": 10,
    "calls": 3,
    "kubernetes": 3,
    "kubernetes calls": 1,
}
_TABLES = {"library": LIBRARY, "kubernetes": KUBERNETES}
_DRAWS = {"plain": PLAIN_VALUES, "all": ALL_VALUES, "nodes": NODES, "pods": PODS}


def _drawn(values: st.SearchStrategy[Any], start: int) -> list[Any]:
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
        "rows": [encoded(dict(row)) for row in case.rows],
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> Case:
    data = json.loads(text)
    return Case(data["family"], data["text"], tuple(decoded(row) for row in data["rows"]))
