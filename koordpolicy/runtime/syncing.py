"""A sync with a repository as part of a process: its log, its metrics, its readiness, the hook that triggers it."""

import asyncio
import contextlib
import logging
import os
import random
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from koordpolicy.runtime.health import health_routes
from koordpolicy.runtime.http import Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.serving import Endpoint, serve
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.process import CannotStart, Process
from koordpolicy.source.git.sync import Attempt, GitSync, SyncOutcome, SyncSettings
from koordpolicy.source.git.trouble import SyncError
from koordpolicy.source.git.webhook import HookOutcome, judge

LOG: Final = logging.getLogger(__name__)

HOOK: Final = "/webhook"
REFUSED: Final = "SignatureInvalid"
_SYNCED: Final = "sync"
_STATUS: Final = {HookOutcome.TRIGGERS: 202, HookOutcome.IGNORED: 200, HookOutcome.REFUSED: 403}


@dataclass(frozen=True, slots=True)
class Service:
    """What a process that syncs offers over HTTP; `http` None offers nothing.

    `hook` serves `POST /webhook`, with the secret in `secret_file`, which is read at each message.
    """

    http: Endpoint | None = None
    hook: bool = False
    secret_file: Path | None = None


def make_sync(settings: SyncSettings) -> GitSync:
    """A sync with this process's clock, chance and environment. Raises `CannotStart` for impossible settings."""
    try:
        return GitSync(settings, environment=os.environ, jitter=random.random, clock=time.time)
    except ValueError as error:
        raise CannotStart(str(error)) from None


def observe(sync: GitSync, metrics: Metrics) -> None:
    """Log the attempts of a sync, and count them."""
    last_reason: str | None = None

    def note(attempt: Attempt) -> None:
        nonlocal last_reason
        metrics.add("koordpolicy_sync_total", outcome=attempt.outcome)
        metrics.observe("koordpolicy_sync_duration_seconds", attempt.seconds, outcome=attempt.outcome)
        trouble = attempt.trouble
        if trouble is not None:
            metrics.only("koordpolicy_sync_trouble", 1, reason=trouble.reason)
            kept = f"; {attempt.commit} stays" if attempt.commit else ""
            # The same trouble each period would hide everything else.
            level = logging.DEBUG if last_reason == trouble.reason else logging.WARNING
            LOG.log(level, "%s%s", trouble.message, kept, extra={"reason": trouble.reason})
            last_reason = trouble.reason
            return
        metrics.set("koordpolicy_sync_last_success_timestamp_seconds", sync.state.last_success)
        metrics.only("koordpolicy_sync_revision_info", 1, commit=attempt.commit)
        if last_reason is not None:
            LOG.info("%s can be synced again", sync.address.shown)
            metrics.clear("koordpolicy_sync_trouble")
        last_reason = None
        if attempt.outcome is SyncOutcome.SUCCESS:
            since = f", was {attempt.before}" if attempt.before else ""
            LOG.info(
                "%s of %s is %s%s (%.0f ms)",
                sync.settings.ref,
                sync.address.shown,
                attempt.commit,
                since,
                attempt.seconds * 1000,
                extra={"commit": attempt.commit},
            )

    sync.subscribe(note)


def hook_route(sync: GitSync, metrics: Metrics, secret_file: Path | None) -> Route:
    """What the host of the repository calls when something is pushed."""
    from koordpolicy.runtime.http.json_bodies import read_json  # noqa: PLC0415  # its NumPy is large; most have no such host

    async def heard(request: Request) -> Response:
        secret = ""
        if secret_file is not None:
            try:
                secret = (await asyncio.to_thread(secret_file.read_text, "utf-8")).strip()
            except (OSError, UnicodeDecodeError):
                LOG.warning("the secret of the webhook cannot be read: %s", secret_file)
            if not secret:
                return Response.text("the secret is not there\n", 503)
        worth = judge(secret, sync.settings.ref, request.headers, request.body, read_json)
        metrics.add("koordpolicy_sync_hooks_total", worth=worth)
        if worth is HookOutcome.TRIGGERS:
            sync.trigger()
        return Response.text(f"{worth}\n", _STATUS[worth])

    # Without a secret of its own a message proves nothing.
    return Route("POST", HOOK, heard, Protection.WRITE if secret_file is None else Protection.SIGNED)


def status_of(sync: GitSync) -> Mapping[str, Any]:
    """How the sync stands, as JSON values. Times are seconds since 1970."""
    state = sync.state
    return {
        "sync": {
            "repository": sync.address.shown,
            "ref": sync.settings.ref,
            "link": str(sync.store.link),
            "commit": state.commit,
            "failures": state.failures,
            "trouble": state.trouble and {"reason": state.trouble.reason, "message": state.trouble.message},
            "lastAttempt": state.last_attempt,
            "lastSuccess": state.last_success,
        }
    }


async def run_sync(process: Process, sync: GitSync, service: Service, max_failures: int) -> None:
    """Sync until the process is told to stop. Raises `SyncError` after more failures in a row than permitted."""
    readiness = process.readiness
    readiness.wait_for(_SYNCED, "nothing is published yet")
    observe(sync, process.metrics)

    def published(attempt: Attempt) -> None:
        if attempt.commit:
            readiness.reached(_SYNCED)

    sync.subscribe(published)
    async with contextlib.AsyncExitStack() as stack:
        if service.http is not None:
            process.status.add(lambda: status_of(sync))
            routes = list(health_routes(process))
            if service.hook:
                routes.append(hook_route(sync, process.metrics, service.secret_file))
            server = await serve(stack, service.http, routes, process.metrics)
            process.note_address(service.http.host, server.port)
        await _until_stopped(process, sync.run(max_failures))


async def sync_once(process: Process, sync: GitSync, max_failures: int) -> None:
    """Sync until it succeeds. Raises `SyncError` after more failures in a row than permitted, -1 tries for ever."""
    observe(sync, process.metrics)
    await _until_stopped(process, sync.run(max_failures, once=True))


async def _until_stopped(process: Process, work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it ends, or the process is told to stop."""
    working = asyncio.create_task(work)
    stopped = asyncio.create_task(process.stopped())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for one in (working, stopped):
            one.cancel()
        await asyncio.gather(working, stopped, return_exceptions=True)


def is_refusal(error: SyncError) -> bool:
    """Whether what came was looked at and found wanting, rather than not to be had."""
    return error.reason == REFUSED
