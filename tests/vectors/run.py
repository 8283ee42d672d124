"""Running vectors: each through its runner, with one line for each that fails."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.vectors.files import Vector
from tests.vectors.reading import ReadInput, parent, paths
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


def run(
    vectors: Iterable[Vector], kinds: Collection[str] = (), table: Table = RUNNERS, *, whole: bool = True
) -> Iterator[Result]:
    """The result of each vector, of the kinds asked for only when some are.

    A vector whose runner passes over a part of its input fails, whatever it answers: over a key that the runner read in no
    vector of the kind, though it read what the key stands in. Not so unless `whole`: for runners that ask an algorithm of
    which policies decide the rest.
    """
    asked = [vector for vector in vectors if not kinds or vector.kind in kinds]
    by_kind: dict[int, set[str]] = defaultdict(set)
    results: list[tuple[Result, Runner | None, set[str]]] = []
    for vector in asked:
        runner, read = find_runner(vector, table), {""}
        results.append((Result(vector, _failure(vector, runner, read)), runner, read))
        by_kind[id(runner)] |= read
    for result, runner, read in results:
        if whole and runner is not None and result.failure is None:
            unread = set(paths(result.vector.input)) - by_kind[id(runner)] - runner.irrelevant
            if left := sorted(path for path in unread if parent(path) in read):
                yield Result(result.vector, f"its runner does not read {', '.join(left)}")
                continue
        yield result


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


def _failure(vector: Vector, runner: Runner | None, read: set[str]) -> str | None:
    if runner is None:
        return "no runner for this kind"
    try:
        answer = runner.answer(ReadInput(vector.input, read))
    except Unsupported as reason:
        return f"not supported: {reason}"
    except Exception as error:  # noqa: BLE001 - any failure of one case must not end the run
        return " ".join(f"{type(error).__name__}: {error}".split())
    return runner.comparison.difference(vector.expect, answer)
