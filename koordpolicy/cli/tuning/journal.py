"""The journal of a search, a file that anybody may have written: all that is taken from it is looked at first.

One trial that no search by these marks and flags makes is enough to refuse the whole file: the sampler learns from all of them.
"""

import argparse
import math
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.tuning.objective import Objective
from koordpolicy.cli.tuning.space import Space
from koordpolicy.model.reading import parse_json

if TYPE_CHECKING:
    import optuna

NAME: Final = "koordpolicy"
QUESTION: Final = "question"
BROKEN: Final = "broken"
VALUES: Final = "values"
_FIXED: Final = "fixed_params"
_CONSTRAINTS: Final = "constraints"

_HOW: Final = "name another file to begin a search of its own"
_FAULTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What reading a journal raises where its lines are none that Optuna writes: it trusts them."""


def storage_of(library: Any, file: str, *, resume: bool) -> Any:
    """The storage that keeps a search in a file, which has to be there to be resumed. Raises `CannotRunError`."""
    path = Path(file)
    if path.exists() and not resume:
        raise CannotRunError(f"`{file}` exists already: add --resume to go on with it, or name another file")
    if not path.exists() and resume:
        raise CannotRunError(f"there is no `{file}` to go on with; leave --resume out to begin it")
    with _reading(file):
        if resume:
            _demand_last_line(path)
        return library.storages.JournalStorage(library.storages.journal.JournalFileBackend(file))


def known_study(
    library: Any,
    storage: Any,
    question: Mapping[str, str],
    space: Space,
    objective: Objective,
    arguments: argparse.Namespace,
) -> "list[optuna.trial.FrozenTrial]":
    """All trials of a journal that is resumed. Raises `CannotRunError` where it is none of this very question."""
    file = arguments.study
    with _reading(file):
        study: optuna.Study = library.load_study(study_name=NAME, storage=storage)
        directions = [one.name == "MAXIMIZE" for one in study.directions]
        known = study.user_attrs.get(QUESTION)
        if known != question or directions != [objective.maximise]:
            raise CannotRunError(f"`{file}` holds another search{_differing(known, question)}; {_HOW}")
        trials: list[optuna.trial.FrozenTrial] = study.trials
        for one in trials:
            why = _foreign(library, one, space, objective, arguments.seeds)
            if why:
                raise CannotRunError(
                    f"`{file}` was not written by this search: {why} of trial {one.number} is none of it; {_HOW}"
                )
    return trials


def _differing(known: object, question: Mapping[str, str]) -> str:
    """What differs from the question that a journal holds; "" where that is not known."""
    parts = [
        what for what, digest in question.items() if isinstance(known, Mapping) and known.get(what) != digest
    ]
    return (
        f": its {' and '.join(parts)} {'is' if parts == ['objective'] else 'are'} not these" if parts else ""
    )


@contextmanager
def _reading(file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotRunError(f"{file}: {error.strerror}") from None
    except RecursionError:
        raise CannotRunError(f"`{file}` is no journal of a search: it is nested too deeply; {_HOW}") from None
    except _FAULTS as error:
        raise CannotRunError(f"`{file}` is no journal of a search: {error}; {_HOW}") from None


def _demand_last_line(path: Path) -> None:
    """Raise ValueError where the last line is broken: Optuna passes over it, and fails once another follows."""
    with path.open("rb") as lines:
        last = next(iter(deque(lines, maxlen=1)), b"")
    if not last:
        return
    if not last.endswith(b"\n"):
        raise ValueError("its last line has no end; remove that line, or")
    parse_json(last.decode())


def _foreign(
    library: Any, one: "optuna.trial.FrozenTrial", space: Space, objective: Objective, seeds: int
) -> str:
    """What of a trial no search by this space, objective and so many seeds makes; empty where all is as it is to be."""
    steps = {mark.name: mark.steps for mark in space.tunables}
    kinds = {name: library.distributions.IntDistribution(0, most) for name, most in steps.items()}
    if any(kinds.get(name) != kind for name, kind in one.distributions.items()):
        return "the range"
    fixed = one.system_attrs.get(_FIXED, {})
    if not space.may_hold(one.params) or not isinstance(fixed, Mapping) or not space.may_hold(fixed):
        return "a value"
    if one.state.name == "COMPLETE":
        return _foreign_result(one, space, objective, seeds)
    known = one.state.name in ("RUNNING", "WAITING", "FAIL") and not one.intermediate_values
    return "" if known and not one.system_attrs.keys() - {_FIXED} else "the state"


def _foreign_result(one: "optuna.trial.FrozenTrial", space: Space, objective: Objective, seeds: int) -> str:
    if one.params.keys() != {mark.name for mark in space.tunables}:
        return "a value"
    values, broken = one.user_attrs.get(VALUES), one.user_attrs.get(BROKEN)
    whole = one.values
    if (
        not isinstance(values, list)
        or len(values) != seeds
        or not all(map(_is_number, values))
        or whole is None
        or len(whole) != 1
        or not _is_number(whole[0])
        or not math.isclose(sum(values) / seeds, whole[0], rel_tol=1e-9, abs_tol=1e-12)
    ):
        return "the result"
    if not isinstance(broken, Mapping) or not all(
        text in objective.constraints and type(times) is int and 0 < times <= seeds
        for text, times in broken.items()
    ):
        return "a broken constraint"
    known = one.system_attrs.keys() <= {_FIXED, _CONSTRAINTS}
    return "" if known and one.system_attrs.get(_CONSTRAINTS) == [sum(broken.values())] else "the state"


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]  # it is one of them
