"""`koordpolicy explain`: a diagnostic code, a decision, or the rules behind it."""

import argparse
import re

from koordpolicy.cli.bundle import add_paths, graph_of
from koordpolicy.cli.command import OK, CannotRunError, Command
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.catalogue import UnknownCodeError, page
from koordpolicy.graph.describe import describe
from koordpolicy.graph.graph import UnknownDecision


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", help="a diagnostic code (KP204) or a decision (Overcommit/batch.cpu)")
    add_paths(parser, option=True)


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if re.fullmatch(r"[Kk][Pp]\d+", arguments.what):
        try:
            terminal.print(page(arguments.what, terminal.width))
        except UnknownCodeError as error:
            raise CannotRunError(error.args[0]) from None
        return OK
    graph = graph_of(arguments.policies)
    try:
        terminal.print(describe(graph, arguments.what))
    except UnknownDecision as error:
        raise CannotRunError(str(error)) from None
    return OK


COMMAND = Command("explain", "explain a diagnostic code or a decision", _add, _run)
