"""`koordpolicy rollout`: where rollouts stand, and a hand on them."""

import argparse

from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import FINDINGS, OK, CannotRunError
from koordpolicy.cli.rollouts.asking import request_of
from koordpolicy.cli.rollouts.found import Directory, FoundRollout, InCluster, RolloutPlace, chosen
from koordpolicy.cli.rollouts.text import as_data, details, plan_data, planned, table
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.rollout.judging import Gathered, rollout_facts
from koordpolicy.runtime.rollout.plan import KIND, RolloutPlan, plan_of
from koordpolicy.runtime.rollout.state import Phase, RolloutAction, RolloutProgress, Subject


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say where rollouts stand, or write what is asked of one."""
    if arguments.what == "plan":
        return _plan(arguments, terminal)
    place: RolloutPlace = (
        Directory(arguments.state_dir)
        if arguments.state_dir
        else InCluster(arguments.kubeconfig, arguments.context)
    )
    if arguments.what == "status":
        return _status(place, arguments, terminal)
    return _ask(place, arguments, terminal)


def _status(place: RolloutPlace, arguments: argparse.Namespace, terminal: Terminal) -> int:
    found = place.rollouts()
    if arguments.revision is not None:
        one = chosen(found, arguments.revision, None)
        if arguments.output == "json":
            terminal.print(json_text(as_data(one), indent=2))
        else:
            terminal.print("\n".join(details(one, now_ns(), terminal.width)))
        return FINDINGS if one.state.phase is Phase.ABORTED else OK
    if arguments.output == "json":
        terminal.print(json_text([as_data(one) for one in found], indent=2))
    elif not found:
        terminal.print("no rollouts")
    else:
        terminal.print("\n".join(table(found, now_ns(), terminal.width)))
    return OK


def _ask(place: RolloutPlace, arguments: argparse.Namespace, terminal: Terminal) -> int:
    asked = request_of(place.rollouts(), arguments.revision, RolloutAction(arguments.what), arguments.by)
    if asked.command is None:
        _say(arguments, terminal, asked.rollout, asked.said, asked=False)
        return OK
    place.ask(asked.rollout, asked.command)
    text = f"{asked.said}; `koordpolicy rollout status` shows when it is done"
    _say(arguments, terminal, asked.rollout, text, asked=True)
    return OK


def _say(
    arguments: argparse.Namespace, terminal: Terminal, one: FoundRollout, text: str, *, asked: bool
) -> None:
    """What came of asking; for programs with the rollout as it was then."""
    data = {"action": arguments.what, "asked": asked, "rollout": as_data(one)}
    terminal.print(json_text(data, indent=2) if arguments.output == "json" else text)


def _plan(arguments: argparse.Namespace, terminal: Terminal) -> int:
    now = now_ns()
    graph = graph_of(arguments.paths, arguments.compiler).at(Timestamp(now))
    subject = Subject("", "", "", "", "")
    facts = rollout_facts(RolloutProgress(subject, Phase.PROGRESSING, "", 0, now, now), Gathered(), {}, now)
    try:
        plan = plan_of(graph, facts, now)
    except CelError as error:
        raise CannotRunError(f"the plan depends on how the rollout goes: {error.message}") from None
    requirements = _requirements(graph, plan)
    if arguments.output == "json":
        terminal.print(json_text(plan_data(plan, requirements), indent=2))
    else:
        terminal.print("\n".join(planned(plan, requirements, terminal.width)))
    return OK


def _requirements(graph: RuleGraph, plan: RolloutPlan) -> dict[str, str]:
    """The text of each guard's rule."""
    found = {}
    for guard in plan.guards:
        rules = graph.decision(f"{KIND}.guards[{guard.name}].require").rules
        found[guard.name] = " ".join(rules[0].text.split()) if rules else ""
    return found
