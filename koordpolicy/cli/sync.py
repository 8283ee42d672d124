"""`koordpolicy sync`: a directory that follows a Git repository, for whatever reads policies."""

import argparse
import os
from dataclasses import replace
from pathlib import Path

from koordpolicy.cli.command import CANNOT_RUN, FINDINGS, CannotRunError, Command
from koordpolicy.cli.repository import add_repository_flags, repository_settings
from koordpolicy.cli.serving import add_serving_flags, http_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.runtime.logs import LogFormat, set_up_logging
from koordpolicy.runtime.process import CannotStart, Process, run_process
from koordpolicy.runtime.syncing import Service, is_refusal, make_sync, run_sync, sync_once
from koordpolicy.source.git.trouble import SyncError

_EPILOG = (
    "exit code: 0 synced (with --once) or stopped when told to, 1 the commit's signature was refused, "
    "2 could not sync or start"
)


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repo", metavar="URL", required=True, help="address of the repository: HTTPS, SSH, or a path"
    )
    parser.add_argument(
        "--dir",
        metavar="DIR",
        type=Path,
        required=True,
        help="directory that is kept in step, and nothing else's",
    )
    parser.add_argument(
        "--link",
        metavar="NAME",
        default="",
        help="link to the present tree, for readers (default: the last element of the address, without `.git`)",
    )
    parser.add_argument("--once", action="store_true", help="sync once and end")
    parser.add_argument(
        "--max-failures",
        metavar="N",
        type=int,
        help="end after more failures in a row; -1 goes on for ever (default: -1, with --once 0)",
    )
    add_repository_flags(parser)
    add_serving_flags(parser.add_argument_group("serving"), "off", delegates=False)
    service = parser.add_argument_group("observing")
    service.add_argument(
        "--webhook",
        action="store_true",
        help="sync at once on POST /webhook; without a secret for callers with credentials, or on a loopback address",
    )
    service.add_argument(
        "--webhook-secret-file",
        metavar="FILE",
        type=Path,
        help="secret that messages to the webhook must prove to know, as those of GitHub, GitLab, Gitea and Forgejo",
    )
    service.add_argument(
        "--log-format", choices=[str(one) for one in LogFormat], default="text", help="of the log (text)"
    )
    service.add_argument("--verbose", action="store_true", help="log more")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
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


COMMAND = Command(_add, _run, _EPILOG)
