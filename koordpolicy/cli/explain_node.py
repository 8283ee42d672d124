"""`koordpolicy explain node`: the kernel files under policy of a node, from its agent or a saved record."""

import argparse
import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from koordpolicy.agent.explanation_text import NotARecord, checked_record, explanation_text
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text

_MOST: Final = 256 << 20
"""Bytes of a record."""
_PATIENCE: Final = 30.0


def explain_node(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Show the record that was named."""
    if arguments.record and arguments.agent:
        raise CannotRunError("a record is saved or asked of an agent: give one of `--record` and `--agent`")
    where, text = (
        (arguments.record, _saved(arguments.record))
        if arguments.record
        else (arguments.agent, _asked(arguments.agent))
    )
    try:
        record = checked_record(json.loads(text))
    except (NotARecord, ValueError, RecursionError) as error:
        raise CannotRunError(
            f"{where}: no record of a node, as `koordpolicy agent --once --output json` prints it: {error}"
        ) from None
    terminal.print(
        json_text(record, indent=2)
        if arguments.output == "json"
        else explanation_text(record, terminal.width)
    )
    return OK


def _saved(path: str) -> bytes:
    try:
        if path == "-":
            return sys.stdin.buffer.read(_MOST)
        with Path(path).open("rb") as file:
            return file.read(_MOST)
    except OSError as error:
        raise CannotRunError(f"{path} cannot be read: {error.strerror or error}") from None


def _asked(url: str) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise CannotRunError(f"--agent takes a URL such as http://127.0.0.1:9316, not `{url}`")
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/node", timeout=_PATIENCE) as answer:  # noqa: S310 - of a server
            found: bytes = answer.read(_MOST)
    except urllib.error.HTTPError as error:
        raise CannotRunError(f"the agent at {url} does not tell: {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        raise CannotRunError(f"no agent answers at {url}: {error}; `--agent` says where it listens") from None
    return found
