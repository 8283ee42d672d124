"""`koordpolicy descheduler`: let pods leave nodes that policies would have them leave."""

import argparse
from dataclasses import replace

from koordpolicy.cli.deschedule_picture import deschedule_picture
from koordpolicy.cli.flags.descheduler import HTTP_DEFAULT
from koordpolicy.cli.process import run_component, settings_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.descheduler.process import NAME, DeschedulerSettings, run_descheduler
from koordpolicy.descheduler.round import RoundReport, report_data, report_text
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.runtime.component import Settings
from koordpolicy.runtime.process import Process
from koordpolicy.scheduler.relocation import SchedulerRelocations


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Go on until told to stop, or for one round; of a picture, say what that finds."""
    if arguments.snapshot or arguments.filename:
        return deschedule_picture(arguments, terminal)

    def show(report: RoundReport) -> None:
        if arguments.output == "json":
            terminal.print(json_text(report_data(report)))
        else:
            terminal.print("\n".join(report_text(report)))

    how = DeschedulerSettings(
        SchedulerRelocations, arguments.profile, arguments.dry_run, show if arguments.once else None
    )

    async def main(process: Process, settings: Settings) -> None:
        await run_descheduler(process, settings, how)

    if arguments.http is None:
        arguments.http = "off" if arguments.once else HTTP_DEFAULT
    settings = settings_of(arguments)
    if arguments.dry_run:  # whoever lets nobody go leads nobody, and keeps no other from leading
        settings = replace(settings, leader_elect=False)
    return run_component(arguments, NAME, settings, main)
