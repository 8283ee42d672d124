"""What the flags on YARN say."""

import argparse
from urllib.parse import urlsplit

from koordpolicy.cli.command import CannotRunError
from koordpolicy.yarn.resource_manager import ResourceManagerAccess


def resource_manager_of(arguments: argparse.Namespace) -> ResourceManagerAccess | None:
    """Where ResourceManagers are; None where nobody is to be asked."""
    urls = tuple(url.rstrip("/") for url in arguments.yarn_url)
    if not urls:
        if arguments.yarn_user or arguments.yarn_token_file or arguments.yarn_ca_file:
            raise CannotRunError("--yarn-user, --yarn-token-file and --yarn-ca-file need --yarn-url")
        return None
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
