"""`koordpolicy manager`: the controllers and webhooks of a cluster."""

import argparse
from dataclasses import replace

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.process import run_component, settings_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cli.webhooks import webhooks_of
from koordpolicy.manager.process import NAME, Pace, run_manager
from koordpolicy.runtime.component import Settings
from koordpolicy.runtime.process import Process


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Control until told to stop."""
    if arguments.resync < 1 or arguments.workers < 1:
        raise CannotRunError("--resync and --workers take numbers from 1")
    pace, webhooks = Pace(arguments.workers, arguments.resync), webhooks_of(arguments)

    async def main(process: Process, settings: Settings) -> None:
        await run_manager(process, settings, pace, webhooks)

    settings = replace(settings_of(arguments), slo_config_namespace=arguments.follow_slo_config)
    return run_component(arguments, NAME, settings, main)
