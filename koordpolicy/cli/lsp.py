"""`koordpolicy lsp`: policies in an editor."""

import argparse
import logging
import os
import sys
from pathlib import Path

from koordpolicy.cli.bundles import enclosing
from koordpolicy.cli.command import CANNOT_RUN, OK
from koordpolicy.cli.terminal import Terminal


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Serve until the editor is done."""
    from koordpolicy.cli.at_flag import moment_of  # noqa: PLC0415  # nobody else waits for the protocol's library
    from koordpolicy.language_server.frames import Frames  # noqa: PLC0415
    from koordpolicy.language_server.server import make_server  # noqa: PLC0415

    del terminal
    log = logging.FileHandler(arguments.log_file) if arguments.log_file else logging.StreamHandler(sys.stderr)
    if not arguments.log_file:
        log.addFilter(_in_a_line)
    logging.basicConfig(
        handlers=[log], level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s"
    )
    # The library closes what it reads and writes; the streams of the process are closed by nobody but itself.
    given, said = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    frames = Frames(given)
    server = make_server(lambda: moment_of(None), _root_of)
    server.start_io(frames, said)  # type: ignore[arg-type]  # lines and bodies are all that is read
    return CANNOT_RUN if frames.failed else OK


def _in_a_line(record: logging.LogRecord) -> bool:
    """What the protocol's library says with a traceback, for standard error: a client's slip is told, a log file has all of it."""
    first, *more = record.getMessage().splitlines() or [""]
    if more or record.exc_info:
        record.msg, record.args = f"{first} (`--log-file` keeps all of it)", ()
        record.exc_info, record.exc_text = None, None
    return True


def _root_of(path: str) -> str | None:
    """The enclosing bundle of a file, which need not be there yet."""
    place = Path(path)
    return enclosing(str(place if place.exists() else place.parent))
