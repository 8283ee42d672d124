"""What speaks for the best choice: it and what there was, simulated by seeds that the search never saw."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from koordpolicy.cli import markup
from koordpolicy.cli.counted import counted
from koordpolicy.cli.simulation import whatif
from koordpolicy.cli.simulation.made import Made
from koordpolicy.cli.simulation.pairs import ComparedPolicies, Pairs
from koordpolicy.cli.tuning.engines import Engine
from koordpolicy.cli.tuning.evaluation import Report, evaluate, job_of
from koordpolicy.cli.tuning.objective import Objective
from koordpolicy.cli.tuning.search import Found, Trial
from koordpolicy.cli.tuning.space import Space
from koordpolicy.simulator.comparison import Compared, Measure, Unit, compared

NAMES = ("as it is", "tuned")


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Both by the same new seeds: all reports, the objective with the interval of the difference, constraints broken by how many."""

    seeds: range
    before: list[Report]
    after: list[Report]
    objective: Compared
    broken: Mapping[str, int]

    @property
    def holds(self) -> bool:
        """Whether it is better there too, in the mean, and keeps all constraints."""
        return bool(self.objective.measure.more_is_better) == (self.objective.difference > 0) and (
            self.objective.difference != 0 and not self.broken
        )

    @property
    def supported(self) -> bool:
        """Whether that is more than chance may have made."""
        return self.holds and self.objective.sure

    def pairs(self, words: tuple[str, ...]) -> Pairs:
        """Both as a comparison of two policies, by the command that had it made."""
        before, after = (
            ComparedPolicies(name, reports[0]["policies"]["digest"])
            for name, reports in zip(NAMES, (self.before, self.after), strict=True)
        )
        return Pairs((before, after), self.before, self.after, Made(words, tuple(self.seeds)))


def confirm(
    space: Space, best: Trial, objective: Objective, arguments: argparse.Namespace, pool: Engine
) -> Confirmed:
    """Simulate both by the seeds that follow those of the search. Raises `CannotRunError`, `KeyboardInterrupt`."""
    first = arguments.seed + arguments.seeds
    seeds = range(first, first + arguments.confirm_seeds)
    texts = space.texts(best.steps)
    pairs = [
        (pool.submit(evaluate, job_of(space.files, arguments, seed)), pool.submit(evaluate, job_of(texts, arguments, seed)))
        for seed in seeds
    ]  # fmt: skip
    before, after = [pool.outcome(one) for one, _ in pairs], [pool.outcome(one) for _, one in pairs]
    earlier, later = ([objective.value(one) for one in reports] for reports in (before, after))
    measure = Measure(objective.text, Unit.PODS, lambda _: 0.0, objective.maximise)
    broken: dict[str, int] = {}
    for text in (text for one in later for text in one.broken):
        broken[text] = broken.get(text, 0) + 1
    difference = compared(measure, [one.objective for one in earlier], [one.objective for one in later])
    return Confirmed(seeds, before, after, difference, broken)


def evidence(
    space: Space,
    objective: Objective,
    found: Found,
    best: Trial | None,
    confirmed: Confirmed | None,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """All of it as data; without a best choice, or one that was compared, null stands for what they would say."""
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    used = (*seeds, *(() if confirmed is None else confirmed.seeds))
    compared = None if confirmed is None else whatif.found(confirmed.pairs(arguments.command_line))
    return {
        "made": Made(arguments.command_line, used).data(),
        "policies": {
            "before": space.graph.digest,
            "after": None if compared is None else compared["after"]["digest"],
        },
        "objective": {"expression": objective.text, "direction": "maximise" if objective.maximise else "minimise", "unit": objective.unit},
        "constraints": list(objective.constraints),
        "values": [
            {
                "name": mark.name,
                "before": mark.present,
                "after": None if best is None else mark.written(best.steps[mark.name]),
                "range": [mark.written(0), mark.written(mark.steps)],
                "importance": None if found.importance is None else found.importance.get(mark.name),
            }
            for mark in space.tunables
        ],
        "search": {
            "seeds": list(seeds),
            "best": None if best is None else best.value,
            "failed": found.failed,
            "problem": found.problem,
            "interrupted": found.interrupted,
            "outOfTime": found.out_of_time,
        },
        "confirmation": None if confirmed is None else _confirmation(confirmed),
        "measures": [] if compared is None else compared["measures"],
        "trials": [
            {
                "number": trial.number,
                "values": {mark.name: mark.written(trial.steps[mark.name]) for mark in space.tunables},
                "objective": trial.value,
                "bySeed": list(trial.values),
                "broken": trial.broken,
            }
            for trial in found.trials
        ],
    }  # fmt: skip


def _confirmation(confirmed: Confirmed) -> dict[str, Any]:
    one = confirmed.objective
    return {
        "seeds": list(confirmed.seeds),
        "before": one.before,
        "after": one.after,
        "difference": one.difference,
        "low": one.low,
        "high": one.high,
        "sure": one.sure,
        "holds": confirmed.holds,
        "broken": dict(confirmed.broken),
    }


def markdown(
    told: Mapping[str, Any], confirmed: Confirmed, objective: Objective, words: tuple[str, ...]
) -> str:
    """The same for a merge request; `words` are those that the command was called with."""
    values = [
        f"| {markup.ticked(one['name'])} | {markup.plain(one['before'])} | {markup.plain(one['after'])} |"
        f" {markup.plain(' to '.join(one['range']))} |"
        f" {'' if one['importance'] is None else format(one['importance'], '.2f')} |"
        for one in told["values"]
    ]
    aim = told["objective"]
    subject = "".join(f", subject to {markup.code(one)}" for one in told["constraints"])
    new = told["confirmation"]
    broken = "".join(
        f"\n\nBroken in {times} of them: {markup.code(text)}" for text, times in new["broken"].items()
    )
    chance = "" if new["sure"] or not new["holds"] else " Chance alone may have made that."
    summary = (
        f"{counted(len(told['trials']), 'trial')} by {counted(len(told['search']['seeds']), 'seed')}. By"
        f" {counted(len(new['seeds']), 'seed')} that the search did not use: {objective.shown(new['before'])} →"
        f" {objective.shown(new['after'])} ({objective.difference(confirmed.objective)}, {'sure' if new['sure'] else 'not sure'}).{chance}{broken}"
    )
    return "\n".join(
        (
            f"**Tuned: {aim['direction']} {markup.code(aim['expression'])}**{subject}",
            "",
            "| value | before | after | range | importance |",
            "|---|--:|--:|---|--:|",
            *values,
            "",
            summary,
            "",
            whatif.render_markdown(confirmed.pairs(words)),
        )
    )
