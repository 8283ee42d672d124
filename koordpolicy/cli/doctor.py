"""`koordpolicy doctor`: what keeps koordpolicy from working in a cluster, and what to do about it."""

import argparse
import asyncio
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from koordpolicy.cli.command import CANNOT_RUN, FINDINGS, OK, CannotRunError
from koordpolicy.cli.doctoring.api_server import clock, kinds, version
from koordpolicy.cli.doctoring.beside import koordinator
from koordpolicy.cli.doctoring.check import CheckOutcome, ClusterCheck, Examination, Part, looked_at
from koordpolicy.cli.doctoring.permissions import permissions
from koordpolicy.cli.doctoring.processes import processes
from koordpolicy.cli.doctoring.support_bundle import support_files, write_archive
from koordpolicy.cli.doctoring.webhooks import webhooks
from koordpolicy.cli.doctoring.yarn import yarn
from koordpolicy.cli.patience import patiently
from koordpolicy.cli.statuses.reading import StatusReading
from koordpolicy.cli.statuses.text import status_data
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph.describe.layout import labelled
from koordpolicy.kube.api import ClientLimits, ConfigurationError, Connection, connect
from koordpolicy.kube.errors import KubeError, Unreachable
from koordpolicy.kube.snapshot import SnapshotError
from koordpolicy.runtime.clock import now_ns

_PARTS: Final[Sequence[tuple[str, Part]]] = (
    ("API server", version),
    ("clock", clock),
    ("definitions", kinds),
    ("processes", processes),
    ("permissions", permissions),
    ("webhooks", webhooks),
    ("Koordinator", koordinator),
    ("YARN", yarn),
)
_FOR_EVERYBODY: Final = frozenset({"API server", "clock"})
"""Parts that anybody may look at, and that tell nothing of koordpolicy."""
_COLUMN: Final = 10

LIMITS: Final = ClientLimits(request=15.0, attempts=2)
"""Somebody waits who wants to know whether the server answers at all."""


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Look at all parts, and say what was found."""
    try:
        connection = Connection.load(arguments.kubeconfig, arguments.context, os.environ)
        found = asyncio.run(_examined(connection, arguments, terminal))
    except (ConfigurationError, KubeError, SnapshotError) as error:
        raise CannotRunError(str(error)) from None
    if arguments.output == "json":
        terminal.print(json_text(_data(found), indent=2))
    else:
        terminal.print("\n".join(_lines(found, terminal.width)))
    if any(one.outcome is CheckOutcome.FAILED for one in found):
        return FINDINGS
    if all(one.outcome is CheckOutcome.UNKNOWN for one in found if one.subject not in _FOR_EVERYBODY):
        terminal.say(
            "nothing can be said: you may read none of the objects that tell; ask as an administrator of the cluster"
        )
        return CANNOT_RUN
    return OK


async def _examined(
    connection: Connection, arguments: argparse.Namespace, terminal: Terminal
) -> list[ClusterCheck]:
    found: list[ClusterCheck] = []
    at = ""

    async def examine() -> None:
        nonlocal at
        async with connect(connection, jitter=random.random, component="doctor", limits=LIMITS) as cluster:
            examination = Examination(cluster, arguments.namespace, now_ns)
            for at, part in _PARTS:
                try:
                    found.extend(await looked_at(part, at, examination))
                except Unreachable:
                    if not found:
                        raise
                    found.append(
                        ClusterCheck(at, CheckOutcome.FAILED, "the API server is not reached any more")
                    )

            if arguments.bundle is not None:
                at = "objects for the bundle"
                reading = StatusReading()
                await reading.read(examination.all)
                told = {"doctor": _data(found), "status": status_data(reading.status(now_ns()))}
                write_archive(await support_files(examination, told), Path(arguments.bundle), now_ns())
                terminal.say(f"wrote {arguments.bundle}")

    await patiently(examine(), lambda: f"still looking at the {at}", terminal.say)
    return found


def _data(found: Sequence[ClusterCheck]) -> list[dict[str, str | None]]:
    return [
        {
            "subject": one.subject,
            "outcome": str(one.outcome),
            "message": one.message,
            "remedy": one.remedy or None,
        }
        for one in found
    ]


def _lines(found: Sequence[ClusterCheck], width: int) -> Iterator[str]:
    """By subject, each with its outcome; the remedy below what is not well."""
    before = ""
    for one in found:
        if one.subject != before:
            yield one.subject
            before = one.subject
        yield from labelled(str(one.outcome), one.message, width, column=2 + _COLUMN)
        if one.remedy and one.outcome is not CheckOutcome.GOOD:
            yield from labelled("", f"-> {one.remedy}", width, column=2 + _COLUMN)
    worst = {outcome: sum(one.outcome is outcome for one in found) for outcome in CheckOutcome}
    yield ""
    unknown = f", {worst[CheckOutcome.UNKNOWN]} unknown" if worst[CheckOutcome.UNKNOWN] else ""
    yield f"{worst[CheckOutcome.FAILED]} failed, {worst[CheckOutcome.WARNING]} to look at, {worst[CheckOutcome.GOOD]} ok{unknown}"
