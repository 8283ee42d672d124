"""`koordpolicy tune`: search values that policies mark as tunable, and write the best as a patch."""

import argparse
import difflib
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from koordpolicy.cli.command import FINDINGS, OK, CannotRunError
from koordpolicy.cli.counted import counted
from koordpolicy.cli.edits import show_change, write_text
from koordpolicy.cli.output_files import put_text
from koordpolicy.cli.simulation import whatif
from koordpolicy.cli.simulation.effect import demand_profiles
from koordpolicy.cli.simulation.runs import workload_of
from koordpolicy.cli.simulation.words import BOLD, DIM, GREEN, YELLOW, Page
from koordpolicy.cli.start import INTERRUPTED
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cli.tuning.dask_cluster import DaskCluster
from koordpolicy.cli.tuning.engines import Engine, EngineLostError, engine
from koordpolicy.cli.tuning.evaluation import given_by
from koordpolicy.cli.tuning.evidence import Confirmed, confirm, evidence, markdown
from koordpolicy.cli.tuning.measures import measured
from koordpolicy.cli.tuning.objective import Objective
from koordpolicy.cli.tuning.rollout import rollout_document
from koordpolicy.cli.tuning.search import Found, Trial, best_of, search
from koordpolicy.cli.tuning.space import Space, space_of
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.language.kinds.rollout import RolloutSpec
from koordpolicy.simulator.balance import deschedules


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Search, confirm, and write what is asked for."""
    maximise = arguments.maximise is not None
    text = arguments.maximise if maximise else arguments.minimise
    objective = Objective(text, arguments.subject_to, maximise=maximise)
    if arguments.evidence is not None and Path(arguments.evidence).suffix not in (".json", ".md"):
        raise CannotRunError(f"--evidence writes *.json or *.md, not `{arguments.evidence}`")
    space = space_of(arguments.paths)
    demand_profiles(((", ".join(arguments.paths), space.graph),))
    objective.demand(_parts(arguments, space))
    _demand_no_rollout(arguments, space)
    workload_of(arguments, arguments.seed)
    given = given_by(arguments)
    pool = engine(arguments.jobs) if arguments.dask is None else DaskCluster(arguments.dask, given)
    if arguments.jobs is not None:
        pool.trials = arguments.jobs
    try:
        return _tuned(space, objective, arguments, pool, terminal)
    except EngineLostError as error:
        kept = f"; what was tried stands in {arguments.study}: go on with --resume" if arguments.study else ""
        raise CannotRunError(f"{error}{kept}") from None
    finally:
        terminal.end_progress()
        _stop(pool)


def _parts(arguments: argparse.Namespace, space: Space) -> set[str]:
    """The parts of a report that are there under a condition, and will be."""
    there = {
        "agents": arguments.agents,
        "faults": arguments.faults is not None,
        "descheduling": deschedules(space.graph),
    }
    return {part for part, is_there in there.items() if is_there}


def _stop(pool: Engine) -> None:
    """End the processes; what they are in the midst of, where that was interrupted, is worth nothing any more."""
    pool.shutdown(wait=False, cancel_futures=True)
    for process in multiprocessing.active_children():
        process.terminate()
        process.join(_PATIENCE)


_PATIENCE: Final = 10
"""Seconds within which a process ends."""


def _demand_no_rollout(arguments: argparse.Namespace, space: Space) -> None:
    """Raise CannotRunError where a Rollout is there already: two of them are in each other's way."""
    there = [one.document for one in space.compilation.units if isinstance(one.spec, RolloutSpec)]
    if arguments.rollout is not None and there:
        raise CannotRunError(
            f"{there[0].file} has the Rollout `{there[0].name}` already, by which the change goes live; leave --rollout out"
        )


def _tuned(
    space: Space, objective: Objective, arguments: argparse.Namespace, pool: Engine, terminal: Terminal
) -> int:
    page = Page(terminal.width, terminal.colour())

    def tell(found: Found, begun: Trial | None) -> None:
        best = best_of(found, objective)
        reached = (
            "none yet that keeps the constraints" if best is None else f"best {objective.shown(best.value)}"
        )
        number = len(found.trials) + found.failed + (begun is not None)
        terminal.progress(f"trial {number} of {arguments.trials}, {reached}")

    found = search(space, objective, arguments, pool, tell)
    terminal.end_progress()
    best = best_of(found, objective)
    in_words = arguments.output == "text"
    for line in _searched(space, objective, found, best, arguments, page) if in_words else ():
        terminal.print(line)
    better = best is not None and best.steps != space.present
    if not in_words and (found.interrupted or not better):
        terminal.print(json_text(evidence(space, objective, found, best, None, arguments), indent=2))
    if found.interrupted:
        resume = f"; go on with `--study {arguments.study} --resume`" if arguments.study else ""
        terminal.say(f"koordpolicy tune: interrupted, and nothing was written{resume}")
        return INTERRUPTED
    if best is None or not better:
        if in_words:
            terminal.print()
            terminal.print(
                "Nothing that was tried keeps the constraints."
                if best is None
                else "What there is, is the best of what was tried."
            )
        return FINDINGS
    terminal.progress("comparing by seeds that the search did not use")
    confirmed = confirm(space, best, objective, arguments, pool)
    terminal.end_progress()
    for line in _confirmed(confirmed, objective, arguments, page) if in_words else ():
        terminal.print(line)
    if not in_words:
        terminal.print(json_text(evidence(space, objective, found, best, confirmed, arguments), indent=2))
        if confirmed.holds and not confirmed.supported:
            terminal.say(f"koordpolicy tune: {_unsure(confirmed, arguments)}")
    _tell_evidence(space, objective, found, best, confirmed, arguments, terminal)
    if not _taken(confirmed, arguments):
        return FINDINGS
    _leave(space, best, arguments, terminal)
    return OK


def _taken(confirmed: Confirmed, arguments: argparse.Namespace) -> bool:
    """Whether the change is left to whoever asked: what may be chance is where that was said to be enough."""
    return confirmed.supported or (confirmed.holds and arguments.accept_unsure)


def _unsure(confirmed: Confirmed, arguments: argparse.Namespace) -> str:
    """What is said of a change that is better in the mean, where that may be chance."""
    if arguments.accept_unsure:
        return "chance may have made that: the change is left all the same, as --accept-unsure says"
    kept = f", which --study {arguments.study} --resume asks without a new search" if arguments.study else ""
    seeds = len(confirmed.seeds)
    more = (
        f"one seed makes nothing sure: say --confirm-seeds {_ENOUGH_SEEDS}{kept}"
        if seeds == 1
        else f"more --confirm-seeds than {seeds} may make it sure{kept}, more --trials find what is better"
    )
    return (
        f"chance may have made that: the files are left as they are, and no patch is written; {more};"
        " --accept-unsure leaves the change all the same"
    )


_ENOUGH_SEEDS: Final = 5
"""Seeds by which a clear difference is sure."""


def _searched(
    space: Space,
    objective: Objective,
    found: Found,
    best: Trial | None,
    arguments: argparse.Namespace,
    page: Page,
) -> Iterator[str]:
    tried = f"{counted(len(found.trials), 'trial')}, {counted(arguments.seeds, 'seed')} each"
    yield page.heading("Tuned", tried)
    yield from page.wrapped(f"{'maximise' if objective.maximise else 'minimise'} {objective.text}", 2)
    for one in objective.constraints:
        yield from page.wrapped(f"subject to {one}", 2)
    if found.failed:
        yield page.paint(f"  {counted(found.failed, 'trial')} failed", YELLOW)
        yield from page.wrapped(f"the last one: {found.problem}", 4)
    if found.interrupted:
        tried = f"{len(found.trials)} of {arguments.trials} trials"
        yield page.paint(
            f"  interrupted, after {tried}: nothing is confirmed, and nothing was written", YELLOW
        )
    if found.exhausted:
        yield "  all choices were tried"
    if found.out_of_time:
        kept = f"--study {arguments.study}" if arguments.study else "--study FILE, which keeps a search,"
        yield page.paint(f"  the time is up, after {len(found.trials)} of {arguments.trials} trials", YELLOW)
        yield from page.wrapped(f"{kept} and --resume go on with it", 4)
    yield ""
    for mark in space.tunables:
        after = "?" if best is None else mark.written(best.steps[mark.name])
        weight = (found.importance or {}).get(mark.name)
        share = "" if weight is None else f"importance {weight:.2f}"
        yield from page.wrapped(mark.name, 2)
        yield f"    {mark.present} → {page.paint(after, BOLD)}  " + page.paint(
            f"of {mark.written(0)} to {mark.written(mark.steps)}  {share}".rstrip(), DIM
        )


def _confirmed(
    confirmed: Confirmed, objective: Objective, arguments: argparse.Namespace, page: Page
) -> Iterator[str]:
    one = confirmed.objective
    sure = "sure" if one.sure else "not sure"
    yield ""
    yield page.heading("By seeds that the search did not use", counted(len(confirmed.seeds), "seed"))
    shown = f"  {objective.shown(one.before)} → {objective.shown(one.after)}  {objective.difference(one)}"
    yield page.paint(shown, GREEN if confirmed.supported else YELLOW) + f"  {sure}"
    if confirmed.holds and not confirmed.supported:
        said = _unsure(confirmed, arguments)
        yield from page.wrapped(f"{said[0].upper()}{said[1:]}.", 2)
    yield from _constraints(confirmed, objective, page)
    worse = list(whatif.worse_lines(confirmed.pairs(arguments.command_line), page))
    if worse:
        yield "  worse for sure:"
        yield from worse
    if not confirmed.holds:
        yield "  It does not hold there: the files are left as they are. More --seeds may help."
    yield ""


def _constraints(confirmed: Confirmed, objective: Objective, page: Page) -> Iterator[str]:
    """Each constraint, with the means of what it reads before and after."""
    before, after = ([measured(one) for one in reports] for reports in (confirmed.before, confirmed.after))
    for text in objective.constraints:
        times = confirmed.broken.get(text, 0)
        said = f"broken by {counted(times, 'seed')}" if times else "kept"
        yield page.paint(f"  {said}: {page.short(text, page.width - len(said) - 4)}", YELLOW if times else "")
        for path in objective.read_by(text):
            numbers = [
                [one[path] for one in side if isinstance(one.get(path), float)] for side in (before, after)
            ]
            if all(numbers):
                earlier, later = (f"{sum(side) / len(side):.4g}" for side in numbers)
                yield from page.wrapped(f"report.{path}: {earlier} → {later} in the mean", 4)


def _tell_evidence(
    space: Space,
    objective: Objective,
    found: Found,
    best: Trial,
    confirmed: Confirmed,
    arguments: argparse.Namespace,
    terminal: Terminal,
) -> None:
    """Write what speaks for the change, or does not, where a file is named."""
    if arguments.evidence is None:
        return
    told = evidence(space, objective, found, best, confirmed, arguments)
    as_data = Path(arguments.evidence).suffix == ".json"
    in_words = "" if as_data else markdown(told, confirmed, objective, arguments.command_line)
    put_text(Path(arguments.evidence), f"{json_text(told, indent=2)}\n" if as_data else in_words)
    terminal.say(f"wrote {arguments.evidence}")


def _leave(space: Space, best: Trial, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Write or show the change, as flags say."""
    texts = space.texts(best.steps)
    changed = {file: text for file, text in texts.items() if text != space.files[file]}
    if arguments.rollout is not None:
        kinds = [one.document.kind for one in space.tunables if best.steps[one.name] != one.present_step]
        put_text(Path(arguments.rollout), rollout_document(kinds))
        terminal.say(f"wrote {arguments.rollout}")
    if arguments.patch is not None:
        put_text(
            Path(arguments.patch),
            "".join(_diff(file, space.files[file], text) for file, text in changed.items()),
        )
        terminal.say(f"wrote {arguments.patch}")
    for file, text in changed.items():
        if arguments.write:
            if Path(file).read_text(encoding="utf-8") != space.files[file]:
                raise CannotRunError(f"`{file}` was changed during the search, and is left as it is")
            write_text(file, text)
            terminal.say(f"koordpolicy tune: {file} written")
        elif arguments.patch is None and arguments.output == "text":
            show_change(file, space.files[file], text, "tuned", terminal)


def _diff(file: str, before: str, after: str) -> str:
    """A unified diff as `git apply` and `patch -p1` take it."""
    path = Path(file)
    name = str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path).lstrip("/")
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
