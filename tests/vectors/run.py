"""Running vectors: each through its runner, with one line for each that fails."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.vectors.files import Vector
from tests.vectors.runners import RUNNERS, SHAPES
from tests.vectors.runners.runner import Runner, Unsupported

Table = Mapping[tuple[str, str], Runner]


@dataclass(frozen=True, slots=True)
class Result:
    """One case and what was wrong with the answer; None when nothing was."""

    vector: Vector
    failure: str | None

    @property
    def line(self) -> str:
        """The failure as one line."""
        vector = self.vector
        return f"{vector.stem}: {vector.kind}: {vector.name}: {self.failure}"


def run(vectors: Iterable[Vector], kinds: Collection[str] = (), table: Table = RUNNERS) -> Iterator[Result]:
    """The result of each vector, of the kinds asked for only when some are."""
    for vector in vectors:
        if not kinds or vector.kind in kinds:
            yield Result(vector, _failure(vector, table))


def find_runner(vector: Vector, table: Table = RUNNERS) -> Runner | None:
    """The runner for a vector; None when the project has none.

    Some kinds exist in two domains with different inputs. The shape of the input tells them apart, and
    where it does not, the name of the file.
    """
    domains = [domain for domain, kind in table if kind == vector.kind]
    shapes = SHAPES.get(vector.kind)
    if shapes is not None:
        fitting = [domain for domain, key in shapes.items() if key in vector.input]
        domain = fitting[0] if len(fitting) == 1 else vector.stem
    else:
        domain = domains[0] if len(domains) == 1 else vector.stem
    return table.get((domain, vector.kind))


def _failure(vector: Vector, table: Table) -> str | None:
    runner = find_runner(vector, table)
    if runner is None:
        return "no runner for this kind"
    try:
        answer = runner.answer(vector.input)
    except Unsupported as reason:
        return f"not supported: {reason}"
    except Exception as error:  # noqa: BLE001 - any failure of one case must not end the run
        return " ".join(f"{type(error).__name__}: {error}".split())
    return runner.comparison.difference(vector.expect, answer)
