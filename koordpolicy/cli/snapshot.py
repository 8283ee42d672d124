"""`koordpolicy snapshot`: the objects of a live cluster in one file, for `diff` and other questions."""

import argparse
import asyncio
import os
import random
from pathlib import Path

from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.counted import counted
from koordpolicy.cli.patience import snapshot_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.snapshot import Snapshot, SnapshotError, write_snapshot
from koordpolicy.runtime.clock import now_ns


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Take a picture of the cluster."""
    path = Path(arguments.file)
    if not path.parent.is_dir():
        raise CannotRunError(f"there is no directory `{path.parent}`")
    try:
        connection = Connection.load(arguments.kubeconfig, arguments.context, os.environ)
        snapshot = asyncio.run(_taken(connection, terminal))
        write_snapshot(snapshot, path)
    except (ConfigurationError, SnapshotError, KubeError) as error:
        raise CannotRunError(str(error)) from None
    if arguments.output == "json":
        terminal.print(json_text(_data(snapshot, path), indent=2))
        return OK
    terminal.print(_told(snapshot, path))
    if snapshot.absent:
        terminal.say(f"not served by this cluster: {', '.join(snapshot.absent)}")
    return OK


async def _taken(connection: Connection, terminal: Terminal) -> Snapshot:
    async with connect(connection, jitter=random.random, component="snapshot") as cluster:
        return await snapshot_of(cluster, now_ns(), terminal.say)


def _told(snapshot: Snapshot, path: Path) -> str:
    size = path.stat().st_size
    return (
        f"{path}: {counted(len(snapshot.nodes), 'node')}, {counted(len(snapshot.pods), 'pod')}, {size:,} bytes, "
        f"sha256:{snapshot.digest[:12]}"
    )


def _data(snapshot: Snapshot, path: Path) -> dict[str, object]:
    return {
        "file": str(path),
        "nodes": len(snapshot.nodes),
        "pods": len(snapshot.pods),
        "bytes": path.stat().st_size,
        "sha256": snapshot.digest,
        "notServed": sorted(map(str, snapshot.absent)),
    }
