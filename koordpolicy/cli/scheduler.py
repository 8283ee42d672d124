"""`koordpolicy scheduler`: places the pods of a cluster."""

import argparse

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.flags.scheduler import EXTENDER
from koordpolicy.cli.process import run_component, settings_of
from koordpolicy.cli.serving import endpoint_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import RuleGraph
from koordpolicy.model.quantity import amount
from koordpolicy.runtime.component import Settings
from koordpolicy.runtime.policies.pack_cache import keep_beforehand
from koordpolicy.runtime.process import Process
from koordpolicy.scheduler.extender.steps import OWN
from koordpolicy.scheduler.process import NAME, Choice, run_scheduler
from koordpolicy.scheduler.rehearsal import rehearse
from koordpolicy.scheduler.shards import MOST

_SMALLEST = 2**20
"""Bytes: with less not even one pod may be asked about."""


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Place pods, or answer kube-scheduler, until told to stop."""
    settings, choice = settings_of(arguments), choice_of(arguments)

    async def main(process: Process, settings: Settings) -> None:
        await run_scheduler(process, settings, choice)

    def rehearsed(graph: RuleGraph) -> None:
        rehearse(graph, choice.profile, choice.role())

    if settings.as_shipped:
        keep_beforehand(checked=True)
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
