"""`koordpolicy console`: a page in a browser over a simulation, a picture of a cluster, or a live one."""

import argparse
import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from koordpolicy import resources
from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.console_beside import read_beside
from koordpolicy.cli.console_policies import (
    ConsolePolicies,
    FollowedFiles,
    FollowedPolicies,
    policies_of_files,
)
from koordpolicy.cli.console_questions import questions_by
from koordpolicy.cli.console_revisions import LiveRevisions
from koordpolicy.cli.flags.console import HTTP
from koordpolicy.cli.flags.rollout import this_user
from koordpolicy.cli.host_port import host_and_port
from koordpolicy.cli.patience import snapshot_of
from koordpolicy.cli.picture import as_of_reports, picture_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.console.api import ConsoleApi
from koordpolicy.console.guard import Guard
from koordpolicy.console.playground import LIMITS, Playground
from koordpolicy.console.policies import PolicyView
from koordpolicy.console.process import run_console
from koordpolicy.console.rollout_hand import RolloutHand
from koordpolicy.console.worlds.live import LiveWorld
from koordpolicy.console.worlds.pictured import PicturedWorld
from koordpolicy.console.worlds.simulated import SimulatedWorld
from koordpolicy.console.worlds.world import CannotAnswer, World
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.snapshot import Snapshot, SnapshotError
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.collector import QuietLooks
from koordpolicy.runtime.http.authentication import Authentication
from koordpolicy.runtime.http.serving import Endpoint
from koordpolicy.runtime.logs import LogFormat, set_up_logging
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.process import CannotStart, Process, run_process
from koordpolicy.runtime.trial.client import Trials, start_trials
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.simulation import SimulationSettings
from koordpolicy.simulator.traces import read_described
from koordpolicy.simulator.traces.published import published_workload
from koordpolicy.simulator.workload import Workload, WorkloadError

EXAMPLE: Final = "01-colocated-day"
_EVERY: Final = 30 * SECOND


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Serve the page until told to stop."""
    example = Path(arguments.example) if arguments.example else resources.examples() / EXAMPLE
    said = (
        arguments.live,
        arguments.snapshot,
        arguments.filename,
        arguments.generate,
        arguments.example,
    )
    if sum(map(bool, said)) > 1:
        raise CannotRunError(
            "say one thing to look at: a directory, --generate, --snapshot, --filename or --live"
        )
    cluster = bool(arguments.live or arguments.snapshot or arguments.filename)
    paths = arguments.policies or ([] if cluster else [str(example / "policies")])
    if arguments.policies_from_cluster:
        if not arguments.live:
            raise CannotRunError("`--policies-from-cluster` follows a live cluster: say `--live`, too")
        if paths:
            raise CannotRunError("policies come from `-p` or from the cluster: give one of the two")
    policies = None if arguments.policies_from_cluster else policies_of_files(paths, arguments.compiler)
    endpoint = endpoint_of(arguments)
    set_up_logging(LogFormat.TEXT, verbose=False)
    if not arguments.live and policies is not None:
        # A page of one's own: nobody has to be told what is served to whom, nor that a simulation takes its time.
        logging.getLogger("koordpolicy").setLevel(logging.ERROR)
    trials = start_trials(LIMITS)

    async def main(process: Process) -> None:
        if arguments.live or policies is None:
            await _live(arguments, policies, trials, endpoint, process, terminal)
            return
        world = (
            _still(arguments, policies.graph, terminal)
            if cluster
            else _simulated(arguments, policies.graph, example)
        )
        api = _api(endpoint, policies, trials, world)
        with world if isinstance(world, SimulatedWorld) else nullcontext():
            await _serve(process, endpoint, api, terminal)

    with trials or nullcontext():
        return run_process(main, "console", "console")


def endpoint_of(arguments: argparse.Namespace) -> Endpoint:
    """Where the page is served. Who reaches it on this host may look and try, unless a token is asked for. Raises `CannotRunError`."""
    host, port = host_and_port(HTTP, arguments.http)
    token: Path | None = arguments.bearer_token_file
    authentication = Authentication(token_file=token, anonymous_writes=token is None)
    return Endpoint(HTTP, host, port, None, authentication, "--bearer-token-file")


def _api(
    endpoint: Endpoint,
    policies: ConsolePolicies,
    trials: Trials | None,
    world: World,
    revisions: Callable[[], list[dict[str, Any]]] = list,
    hand: RolloutHand | None = None,
) -> ConsoleApi:
    return ConsoleApi(
        world,
        *_shown(policies, trials),
        questions_by(policies.name),
        Guard("" if endpoint.host in {"0.0.0.0", "::"} else endpoint.host),  # noqa: S104  # compared, not bound
        revisions,
        hand,
    )


def _shown(policies: ConsolePolicies, trials: Trials | None) -> tuple[PolicyView, Playground]:
    return (
        PolicyView(policies.graph, policies.compilation.sources, policies.name),
        Playground(policies.files, policies.graph, pack_remembering(), trials),
    )


async def _serve(
    process: Process,
    endpoint: Endpoint,
    api: ConsoleApi,
    terminal: Terminal,
    beside: Coroutine[Any, Any, None] | None = None,
) -> None:
    def ready(port: int) -> None:
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host or "127.0.0.1"
        terminal.print(f"the console is at http://{host}:{port}/  (Ctrl-C ends it)")
        terminal.flush()

    await run_console(process, endpoint, api, beside, ready)


# --- what is looked at ------------------------------------------------------------------------------


def _simulated(arguments: argparse.Namespace, graph: RuleGraph, example: Path) -> SimulatedWorld:
    settings = SimulationSettings(arguments.interval, arguments.until)
    try:
        return SimulatedWorld(
            graph,
            _workload(arguments, example),
            settings,
            np.random.default_rng(arguments.seed),
            time.monotonic,
            paused=arguments.paused,
        )
    except (CannotAnswer, WorkloadError) as error:
        raise CannotStart(str(error)) from None


def _workload(arguments: argparse.Namespace, example: Path) -> Workload:
    chance = np.random.default_rng(arguments.seed)
    if arguments.generate is None:
        return read_described(example / "workload.yaml", chance)
    nodes, pods = arguments.generate
    return published_workload(nodes, pods, chance)


def _still(arguments: argparse.Namespace, graph: RuleGraph, terminal: Terminal) -> PicturedWorld:
    asked = argparse.Namespace(**{**vars(arguments), "policies_from_cluster": False})
    try:
        found, _ = picture_of(asked, terminal)
    except CannotRunError as error:
        raise CannotStart(str(error)) from None
    if arguments.filename:
        return PicturedWorld(graph, as_of_reports(found), ", ".join(arguments.filename))
    return PicturedWorld(graph, found, f"{arguments.snapshot}, taken {found.taken_text}")


async def _live(
    arguments: argparse.Namespace,
    policies: ConsolePolicies | None,
    trials: Trials | None,
    endpoint: Endpoint,
    process: Process,
    terminal: Terminal,
) -> None:
    """A live cluster. Its policy objects are followed where there are no `policies`, else the paths that those are from."""
    try:
        connection = Connection.load(arguments.kubeconfig, arguments.context, os.environ)
        async with connect(connection, jitter=random.random, component="console") as cluster:
            revisions = LiveRevisions(cluster, f"{this_user()} in the console")
            followed, files = None, None
            if policies is None:
                followed = FollowedPolicies(cluster, arguments.compiler)
                policies = await followed.first()
            elif arguments.policies:
                files = FollowedFiles(arguments.policies, arguments.compiler)
            revisions.here = policies.digest

            def answer_by(changed: ConsolePolicies) -> None:
                revisions.here = changed.digest
                world.graph = changed.graph
                api.answer_by(*_shown(changed, trials))

            async def look() -> Snapshot:
                await revisions.look()
                return await snapshot_of(cluster, now_ns(), terminal.say)

            async def look_again() -> Snapshot:
                if followed is not None:
                    changed = await followed.changed()
                    world.behind = followed.trouble
                    if changed is not None:
                        answer_by(changed)
                return await look()

            title = arguments.context or "the cluster of the kubeconfig"
            every = (arguments.every or _EVERY) / SECOND
            quietly = QuietLooks()
            with quietly():
                first = await look()
                world = LiveWorld(
                    policies.graph,
                    first,
                    title,
                    look_again,
                    every,
                    partial(read_beside, cluster),
                    quietly=quietly,
                )
            hand = revisions if arguments.bearer_token_file else None
            api = _api(endpoint, policies, trials, world, revisions.all, hand)

            async def follow() -> None:
                async with asyncio.TaskGroup() as group:
                    group.create_task(world.follow())
                    if files is not None:
                        group.create_task(files.follow(answer_by, lambda why: setattr(world, "behind", why)))

            await _serve(process, endpoint, api, terminal, follow())
    except (ConfigurationError, SnapshotError, KubeError) as error:
        raise CannotStart(str(error)) from None
