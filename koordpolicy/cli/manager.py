"""`koordpolicy manager`: the controllers of a cluster."""

import argparse

from koordpolicy.cli.command import CannotRunError, Command
from koordpolicy.cli.process import EPILOG, add_process_flags, run_component, settings_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.manager.process import NAME, Pace, run_manager
from koordpolicy.runtime.component import Settings
from koordpolicy.runtime.process import Process


def _add(parser: argparse.ArgumentParser) -> None:
    add_process_flags(parser)
    parser.add_argument(
        "--resync",
        metavar="SECONDS",
        type=float,
        default=60.0,
        help="look at each node so often (default: 60)",
    )
    parser.add_argument(
        "--workers", metavar="N", type=int, default=4, help="nodes written at a time (default: 4)"
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.resync < 1 or arguments.workers < 1:
        raise CannotRunError("--resync and --workers take numbers from 1")
    pace = Pace(arguments.workers, arguments.resync)

    async def main(process: Process, settings: Settings) -> None:
        await run_manager(process, settings, pace)

    return run_component(arguments, NAME, settings_of(arguments), main)


COMMAND = Command(_add, _run, EPILOG)
