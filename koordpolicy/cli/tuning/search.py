"""The search: Optuna proposes values, simulations say what they are worth, a journal keeps both.

The sampler is the tree-structured Parzen estimator (Bergstra et al., 2011) with constraints as in Optuna's TPESampler: of two
choices that break constraints the one that breaks fewer, over fewer seeds, is the better one.
"""

import argparse
import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.tuning.engines import Engine, EngineLostError
from koordpolicy.cli.tuning.evaluation import Report, evaluate, job_of
from koordpolicy.cli.tuning.journal import BROKEN, NAME, QUESTION, VALUES, known_study, storage_of
from koordpolicy.cli.tuning.objective import Objective
from koordpolicy.cli.tuning.space import Space

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True, slots=True)
class Trial:
    """A choice that was tried: its steps, the objective's mean over seeds, by seed, and the constraints it breaks with how often."""

    number: int
    steps: dict[str, int]
    value: float
    values: tuple[float, ...]
    broken: dict[str, int]


@dataclass(slots=True)
class Found:
    """What came of a search; `problem` is why the last of the failed trials failed."""

    trials: list[Trial] = field(default_factory=list)
    failed: int = 0
    importance: dict[str, float] | None = None
    interrupted: bool = False
    exhausted: bool = False
    out_of_time: bool = False
    problem: str | None = None


Told = Callable[[Found, "Trial | None"], None]


def _optuna() -> Any:
    try:
        import optuna  # noqa: PLC0415  # an extra, and slow to import
    except ImportError:
        raise CannotRunError("this needs Optuna: `pip install 'koordpolicy[tune]'`") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _contents(arguments: argparse.Namespace) -> list[bytes]:
    """The files that a day is read from: a name says nothing about what stands in it."""
    named = (arguments.nodes, arguments.pods, arguments.contention, arguments.faults)
    return [Path(one).read_bytes() if one is not None and Path(one).is_file() else b"" for one in named]


def question_of(space: Space, objective: Objective, arguments: argparse.Namespace) -> dict[str, str]:
    """Digests of all that a search's trials depend on, by what they are of: trials of another question say nothing about this one."""
    told = {
        "policies": sorted(space.files.items()),
        "objective": (objective.text, objective.maximise),
        "constraints": objective.constraints,
        "seeds": (arguments.seed, arguments.seeds),
        "simulated day": (job_of({}, arguments, 0), _contents(arguments)),
    }
    return {
        what: hashlib.sha256(repr(one).encode("utf-8", "surrogatepass")).hexdigest()
        for what, one in told.items()
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's warnings that parts of it may change: its version is pinned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def search(
    space: Space, objective: Objective, arguments: argparse.Namespace, pool: Engine, tell: Told
) -> Found:
    """Try choices until a budget is used up, or there is none left; an interrupt ends it with what was found."""
    library = _optuna()
    with _quiet():
        study = _study(library, space, objective, arguments, pool.trials)
        found = Found([_trial(one) for one in _whole(library, study)])
        try:
            _go_on(study, space, objective, arguments, pool, found, tell)
        except KeyboardInterrupt:
            found.interrupted = True
        found.importance = _importance(library, study, found)
    return found


def _study(
    library: Any, space: Space, objective: Objective, arguments: argparse.Namespace, at_a_time: int
) -> "optuna.Study":
    storage = None
    trials: list[optuna.trial.FrozenTrial] = []
    question = question_of(space, objective, arguments)
    if arguments.study is not None:
        storage = storage_of(library, arguments.study, resume=arguments.resume)
        if arguments.resume:
            trials = known_study(library, storage, question, space, objective, arguments)
    elif arguments.resume:
        raise CannotRunError("--resume goes on with a file: name it by --study FILE")
    sampler = library.samplers.TPESampler(
        seed=arguments.seed + len(trials),
        constraints_func=lambda one: (float(sum(one.user_attrs.get(BROKEN, {"": 1}).values())),),
        constant_liar=at_a_time > 1,
    )
    study: optuna.Study = library.create_study(
        storage=storage, sampler=sampler, study_name=NAME, load_if_exists=True,
        direction="maximize" if objective.maximise else "minimize",
    )  # fmt: skip
    if not arguments.resume:
        study.set_user_attr(QUESTION, question)
    if space.present is not None and not trials:
        study.enqueue_trial(dict(space.present))
    return study


def _whole(library: Any, study: "optuna.Study") -> "list[optuna.trial.FrozenTrial]":
    states = (library.trial.TrialState.COMPLETE,)
    return list(study.get_trials(states=states))


def _trial(one: "optuna.trial.FrozenTrial") -> Trial:
    assert one.value is not None  # it is complete
    return Trial(
        one.number, dict(one.params), one.value, tuple(one.user_attrs[VALUES]), dict(one.user_attrs[BROKEN])
    )


def _go_on(
    study: "optuna.Study",
    space: Space,
    objective: Objective,
    arguments: argparse.Namespace,
    pool: Engine,
    found: Found,
    tell: Told,
) -> None:
    end = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    known = {tuple(sorted(one.steps.items())): one for one in found.trials}
    running: dict[int, tuple[optuna.Trial, dict[str, int], list[Future[Report]]]] = {}
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    begun = len(found.trials)
    while True:
        while (
            begun < arguments.trials
            and len(running) < pool.trials
            and (end is None or time.monotonic() < end)
        ):
            if len(known) >= space.size:
                found.exhausted = True
                break
            trial = study.ask()
            steps = {one.name: trial.suggest_int(one.name, 0, one.steps) for one in space.tunables}
            if not space.may_hold(steps):
                raise CannotRunError(
                    f"`{arguments.study}` was changed during the search: it asks for a value beyond the marks"
                )
            begun += 1
            before = known.get(tuple(sorted(steps.items())))
            if before is not None:  # the same choice has the same reports
                _keep(study, trial, steps, before.values, before.broken, found)
                tell(found, None)
                continue
            tell(found, Trial(trial.number, steps, 0.0, (), {}))
            texts = space.texts(steps)
            running[trial.number] = (
                trial, steps, [pool.submit(evaluate, job_of(texts, arguments, seed)) for seed in seeds]
            )  # fmt: skip
        if not running:
            found.out_of_time = begun < arguments.trials and not found.exhausted
            return
        wait([one for _, _, jobs in running.values() for one in jobs if not one.done()], 1, FIRST_COMPLETED)
        pool.demand_sound()
        for number, (trial, steps, jobs) in list(running.items()):
            if not all(one.done() for one in jobs):
                continue
            del running[number]
            try:
                values = [objective.value(pool.outcome(one)) for one in jobs]
            except EngineLostError:
                raise
            except CannotRunError as error:
                trial.set_user_attr("error", str(error))
                study.tell(trial, state=_optuna().trial.TrialState.FAIL)
                found.failed += 1
                found.problem = str(error)
                if not found.trials and found.failed >= _HOPELESS:
                    raise CannotRunError(
                        f"{found.failed} trials failed, and none succeeded: {error}"
                    ) from None
                continue
            broken: dict[str, int] = {}
            for text in (text for one in values for text in one.broken):
                broken[text] = broken.get(text, 0) + 1
            done = _keep(study, trial, steps, [one.objective for one in values], broken, found)
            known[tuple(sorted(steps.items()))] = done
            tell(found, None)


_HOPELESS: Final = 3


def _keep(
    study: "optuna.Study",
    trial: "optuna.Trial",
    steps: dict[str, int],
    values: Sequence[float],
    broken: dict[str, int],
    found: Found,
) -> Trial:
    trial.set_user_attr(VALUES, list(values))
    trial.set_user_attr(BROKEN, broken)
    mean = sum(values) / len(values)
    study.tell(trial, mean)
    done = Trial(trial.number, steps, mean, tuple(values), broken)
    found.trials.append(done)
    return done


def best_of(found: Found, objective: Objective) -> Trial | None:
    """The best choice that keeps all constraints by all seeds of the search; of equals, the first."""
    best: Trial | None = None
    for one in found.trials:
        if not one.broken and (best is None or objective.better(one.value, best.value)):
            best = one
    return best


def _importance(library: Any, study: "optuna.Study", found: Found) -> dict[str, float] | None:
    """How much of what is best each value decides, from 0 to 1 (PED-ANOVA, Watanabe et al., 2023); None where too few were tried."""
    if len({tuple(one.steps.items()) for one in found.trials}) < _ENOUGH:
        return None
    evaluator = library.importance.PedAnovaImportanceEvaluator()
    try:
        told = library.importance.get_param_importances(study, evaluator=evaluator)
    except (ValueError, RuntimeError, ZeroDivisionError):
        return None  # all that was tried is worth the same
    return {str(name): float(share) for name, share in told.items()}


_ENOUGH: Final = 5
