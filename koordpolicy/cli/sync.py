"""`koordpolicy sync`: a directory that follows a Git repository, for whatever reads policies."""

import argparse
import os
from dataclasses import replace

from koordpolicy.cli.command import CANNOT_RUN, FINDINGS, CannotRunError
from koordpolicy.cli.repository import repository_settings
from koordpolicy.cli.serving import http_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.runtime.logs import LogFormat, set_up_logging
from koordpolicy.runtime.process import CannotStart, Process, run_process
from koordpolicy.runtime.syncing import Service, is_refusal, make_sync, run_sync, sync_once
from koordpolicy.source.git.trouble import SyncError


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Sync once, or until told to stop."""
    settings = repository_settings(arguments, arguments.repo, arguments.dir, arguments.link)
    http = http_of(arguments)
    secret = arguments.webhook_secret_file
    if http is not None and arguments.webhook and secret is None:
        # Said by the flag, and for this host alone: beyond it a sync is for those who sign, or show who they are.
        http = replace(
            http,
            authentication=replace(http.authentication, anonymous_writes=True),
            remedies=f"--webhook-secret-file, {http.remedies}",
        )
    hook = arguments.webhook or secret is not None
    if hook and (http is None or arguments.once):
        raise CannotRunError("the webhook needs --http, and no --once")
    if settings.depth < 0 or settings.period <= 0 or settings.timeout <= 0:
        raise CannotRunError("--depth takes a number from 0, --period and --timeout more than nothing")
    failures = arguments.max_failures
    if failures is None:
        failures = 0 if arguments.once else -1
    try:
        sync = make_sync(settings)
    except CannotStart as error:
        raise CannotRunError(str(error)) from None
    set_up_logging(LogFormat(arguments.log_format), verbose=arguments.verbose)
    ended: list[int] = []

    async def main(process: Process) -> None:
        try:
            if arguments.once:
                await sync_once(process, sync, failures)
            else:
                await run_sync(process, sync, Service(http, hook, secret), failures)
        except SyncError as error:
            # The log has its message already.
            ended.append(FINDINGS if is_refusal(error) else CANNOT_RUN)
        finally:
            sync.close()

    code = run_process(main, "sync", os.uname().nodename)
    return ended[0] if ended else code
