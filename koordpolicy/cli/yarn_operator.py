"""`koordpolicy yarn-operator`: batch resources of nodes, shared with a Hadoop YARN."""

import argparse
from urllib.parse import urlsplit

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.process import run_component, settings_of
from koordpolicy.cli.terminal import Terminal
from koordpolicy.runtime.component import Settings
from koordpolicy.runtime.process import Process
from koordpolicy.yarn.resource_manager import ResourceManagerAccess
from koordpolicy.yarn_operator.process import NAME, run_yarn_operator


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Share until told to stop."""
    access = resource_manager_of(arguments)

    async def main(process: Process, settings: Settings) -> None:
        await run_yarn_operator(process, settings, access)

    return run_component(arguments, NAME, settings_of(arguments), main)


def resource_manager_of(arguments: argparse.Namespace) -> ResourceManagerAccess:
    """Where ResourceManagers are, as the flags say. Raises `CannotRunError`."""
    urls = tuple(url.rstrip("/") for url in arguments.yarn_url)
    if not urls:
        raise CannotRunError(
            "--yarn-url is missing: where YARN's ResourceManager is, such as http://rm-0:8088"
        )
    for url in urls:
        _check(url)
    if arguments.yarn_token_file is not None and any(url.startswith("http:") for url in urls):
        raise CannotRunError("--yarn-token-file sends a token: --yarn-url has to begin with https://")
    return ResourceManagerAccess(urls, arguments.yarn_user, arguments.yarn_token_file, arguments.yarn_ca_file)


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0
    except ValueError:
        wrong = True
    if wrong or "?" in url or "#" in url or "@" in url:
        raise CannotRunError(
            f"--yarn-url takes the address of a ResourceManager, such as http://rm-0:8088, not `{url}`"
        )
