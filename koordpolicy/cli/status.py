"""`koordpolicy status`: what runs where, by which revision, what is refused, lent and held back."""

import argparse
import asyncio
import os
import random
from functools import partial

from koordpolicy.cli.command import FINDINGS, OK, CannotRunError
from koordpolicy.cli.patience import patiently
from koordpolicy.cli.statuses.found import ClusterStatus
from koordpolicy.cli.statuses.reading import StatusReading
from koordpolicy.cli.statuses.text import status_data, status_lines
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.listing import every_object
from koordpolicy.runtime.clock import now_ns


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Look once, and say what there is."""
    try:
        connection = Connection.load(arguments.kubeconfig, arguments.context, os.environ)
        status = asyncio.run(_looked(connection, terminal))
    except (ConfigurationError, KubeError) as error:
        raise CannotRunError(str(error)) from None
    if arguments.output == "json":
        terminal.print(json_text(status_data(status), indent=2))
    else:
        terminal.print("\n".join(status_lines(status, now_ns(), terminal.width)))
    return FINDINGS if status.troubles else OK


async def _looked(connection: Connection, terminal: Terminal) -> ClusterStatus:
    reading = StatusReading()
    async with connect(connection, jitter=random.random, component="status") as cluster:
        await patiently(reading.read(partial(every_object, cluster)), reading.word, terminal.say)
    return reading.status(now_ns())
