"""`koordpolicy rollout`: where rollouts stand, and a hand on them."""

import argparse
import getpass
import os
import uuid
from collections.abc import Mapping

from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import FINDINGS, OK, CannotRunError, Command
from koordpolicy.cli.rollouts.found import Directory, FoundRollout, InCluster, RolloutPlace, chosen
from koordpolicy.cli.rollouts.text import as_data, details, plan_data, planned, short, table
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.rollout.judging import Gathered, rollout_facts
from koordpolicy.runtime.rollout.plan import KIND, RolloutPlan, plan_of
from koordpolicy.runtime.rollout.state import Phase, RolloutAction, RolloutCommand, RolloutProgress, Subject

_WORDS: Mapping[str, str] = {
    "status": "where rollouts stand; of one revision with its history",
    "pause": "stay in the present step",
    "resume": "go on after a pause",
    "abort": "return to the old revision, everywhere and for good",
    "plan": "what the policies below a path say of how the next revision goes live",
}


def _add(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, meaning in _WORDS.items():
        one = commands.add_parser(name, help=meaning, description=meaning[0].upper() + meaning[1:] + ".")
        one.add_argument("-o", "--output", choices=("text", "json"), default="text", help="format")
        if name == "plan":
            one.add_argument(
                "paths", metavar="PATH", nargs="*", default=["."], help="files and directories (default: .)"
            )
            continue
        one.add_argument(
            "revision",
            metavar="REVISION",
            nargs="?",
            help="the beginning of its commit or digest, or its PolicyRevision's name"
            + ("" if name == "status" else " (default: the one that goes on)"),
        )
        place = one.add_mutually_exclusive_group()
        place.add_argument(
            "--kubeconfig", metavar="FILE", help="how to reach the cluster (default: as kubectl)"
        )
        place.add_argument(
            "--state-dir", metavar="DIR", help="the state directory of a process without a cluster"
        )
        one.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
        if name != "status":
            one.add_argument("--by", metavar="NAME", default=_user(), help="who asks for it (default: you)")


def _user() -> str:
    """Who sits here, as the history shows it."""
    try:
        return f"{getpass.getuser()}@{os.uname().nodename}"
    except (OSError, KeyError):
        return os.uname().nodename


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
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
    action = RolloutAction(arguments.what)
    one = chosen(place.rollouts(), arguments.revision, action)
    state = one.state
    if state.phase.is_end:
        raise CannotRunError(f"the rollout of {short(state)} is over ({state.phase.lower()})")
    if action is RolloutAction.PAUSE and state.phase is Phase.PAUSED:
        _say(arguments, terminal, one, f"{short(state)} is paused already: {state.message}", asked=False)
        return OK
    if action is RolloutAction.RESUME and state.phase is not Phase.PAUSED:
        raise CannotRunError(f"the rollout of {short(state)} is not paused")
    place.ask(one, RolloutCommand(action, arguments.by, uuid.uuid4().hex[:12]))
    done = "`koordpolicy rollout status` shows when it is done"
    _say(arguments, terminal, one, f"{short(state)}: asked to {action}; {done}", asked=True)
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


COMMAND = Command(_add, _run, epilog="exit code: 0 well, 1 the named rollout was aborted, 2 could not run")
