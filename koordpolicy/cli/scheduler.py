"""`koordpolicy scheduler`: places the pods of a cluster."""

import argparse

from koordpolicy.cli.command import CannotRunError, Command
from koordpolicy.cli.process import EPILOG, add_process_flags, run_component, settings_of
from koordpolicy.cli.serving import endpoint_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import RuleGraph
from koordpolicy.model.quantity import amount
from koordpolicy.runtime.component import Settings
from koordpolicy.runtime.process import Process
from koordpolicy.scheduler.extender.server import MEMORY
from koordpolicy.scheduler.extender.steps import OWN
from koordpolicy.scheduler.loop import IN_FLIGHT
from koordpolicy.scheduler.process import NAME, Choice, run_scheduler
from koordpolicy.scheduler.rehearsal import rehearse
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE
from koordpolicy.scheduler.shards import MOST

EXTENDER = "--extender"
_SMALLEST = 2**20
"""Bytes: with less not even one pod may be asked about."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_process_flags(parser, port=10251)
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default=DEFAULT_PROFILE,
        help=f"SchedulingProfile to schedule by, for pods of its schedulerName (default: {DEFAULT_PROFILE})",
    )
    parser.add_argument(
        "--in-flight",
        metavar="N",
        type=int,
        default=IN_FLIGHT,
        help=f"decisions whose bindings are on their way at most (default: {IN_FLIGHT})",
    )
    parser.add_argument(
        "--shard",
        metavar="I/N",
        default="",
        help="place pods on the nodes of shard I, from 0, of N alone; the N schedulers work at the same time, each with"
        " a lease and standbys of its own",
    )
    beside = parser.add_argument_group("beside kube-scheduler")
    beside.add_argument(
        EXTENDER,
        metavar="[HOST]:PORT",
        default="",
        help="place no pods, but serve kube-scheduler's extender calls filter, prioritize, preempt and bind there, by TLS"
        " to callers with a client certificate (--tls-cert-file, --tls-client-ca-file) or a token",
    )
    beside.add_argument(
        f"{EXTENDER}-anonymous-auth",
        action="store_true",
        help="answer callers without credentials on a loopback address: every process there may place pods",
    )
    beside.add_argument(
        f"{EXTENDER}-memory",
        metavar="SIZE",
        default=f"{MEMORY // 2**20}Mi",
        help="memory that one call may take when it is read; its body may have a quarter of that"
        f" (default: {MEMORY // 2**20}Mi)",
    )
    beside.add_argument(
        "--extender-steps",
        metavar="STEPS",
        default=OWN,
        help="filters and scores of the profile to answer for: `own` (default) are those that kube-scheduler"
        " has no twin of, `all` are all of them; or their names, separated by commas",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    settings, choice = settings_of(arguments), choice_of(arguments)

    async def main(process: Process, settings: Settings) -> None:
        await run_scheduler(process, settings, choice)

    def rehearsed(graph: RuleGraph) -> None:
        rehearse(graph, choice.profile, choice.role())

    return run_component(arguments, NAME, settings, main, rehearsed)


def choice_of(arguments: argparse.Namespace) -> Choice:
    """What the flags make the scheduler do. Raises `CannotRunError`."""
    if arguments.in_flight < 1:
        raise CannotRunError("--in-flight takes a number from 1")
    if arguments.shard and arguments.extender:
        raise CannotRunError("--shard and --extender do not go together: an extender answers about all nodes")
    if arguments.extender_steps != OWN and not arguments.extender:
        raise CannotRunError("--extender-steps needs --extender")
    return Choice(
        arguments.profile,
        arguments.in_flight,
        endpoint_of(arguments, EXTENDER, arguments.extender, writes=True) if arguments.extender else None,
        arguments.extender_steps,
        _shard(arguments.shard) if arguments.shard else None,
        _memory(arguments.extender_memory),
    )


def _memory(said: str) -> int:
    try:
        memory = amount("memory", said)
    except ValueError:
        memory = 0
    if memory < _SMALLEST:
        raise CannotRunError(f"{EXTENDER}-memory takes a quantity from 1Mi, such as 512Mi; not `{said}`")
    return memory


def _shard(said: str) -> tuple[int, int]:
    index, _, count = said.partition("/")
    if not (_is_number(index) and _is_number(count) and int(index) < int(count) <= MOST):
        raise CannotRunError(f"--shard takes I/N, such as 0/2 and 1/2, with N up to {MOST}; not `{said}`")
    return int(index), int(count)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 4


COMMAND = Command(add_flags, _run, EPILOG)
