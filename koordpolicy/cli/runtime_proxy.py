"""`koordpolicy runtime-proxy`: stands between kubelet and container runtime, and asks hooks about what is started."""

import argparse
from functools import partial

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.terminal import Terminal
from koordpolicy.model.time import NANOSECONDS, parse_duration
from koordpolicy.runtime.collector import keep_what_is_there
from koordpolicy.runtime.logs import LogFormat, set_up_logging
from koordpolicy.runtime.process import run_process
from koordpolicy.runtime_proxy.process import NAME, ProxySettings, run_proxy


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Serve until told to stop."""
    settings = settings_of(arguments)
    set_up_logging(LogFormat(arguments.log_format), verbose=arguments.verbose)
    keep_what_is_there()
    return run_process(partial(run_proxy, settings=settings), NAME, NAME)


def settings_of(arguments: argparse.Namespace) -> ProxySettings:
    """What the flags say. Raises `CannotRunError`."""
    try:
        timeout = parse_duration(arguments.hook_timeout) / NANOSECONDS
    except ValueError as problem:
        raise CannotRunError(f"--hook-timeout: {problem}") from None
    if not 0 < timeout <= 3600:
        raise CannotRunError("--hook-timeout takes a duration above nothing, up to an hour")
    key, mark, value = arguments.skip_label.partition("=")
    if not key or not mark:
        raise CannotRunError("--skip-label takes KEY=VALUE")
    if arguments.listen == arguments.runtime:
        raise CannotRunError("--listen and --runtime are two sockets: the kubelet's, and the runtime's own")
    records = arguments.records or arguments.listen.parent / "records"
    return ProxySettings(arguments.listen, arguments.runtime, arguments.hooks, records, timeout, (key, value))
