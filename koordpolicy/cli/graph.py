"""`koordpolicy graph`: the rule graph as a picture, or the list of its decisions."""

import argparse
from pathlib import Path

from koordpolicy.cli.at_flag import moment_of
from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.flags.graph import SUFFIXES
from koordpolicy.cli.output_files import put_text
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.describe import decision_data
from koordpolicy.graph.drawing import FORMATS, Detail, picture_of
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.language.kinds import KINDS


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """List decisions, or draw them."""
    graph = graph_of(arguments.paths, arguments.compiler).at(moment_of(arguments.at))
    keys = _chosen(graph, arguments)
    if not keys:
        raise CannotRunError("no decision fits; `koordpolicy graph` lists all of them")
    format = arguments.output or _format_of(arguments.write)
    if format == "text":
        text = "".join(f"{key}\n" for key in keys)
    elif format == "json":
        text = json_text([decision_data(graph, key) for key in keys], indent=2)
    else:
        detail = Detail(arguments.detail) if arguments.detail else None
        text = FORMATS[format](picture_of(graph, keys, detail))
    if arguments.write is None:
        terminal.print(text)
        return OK
    put_text(arguments.write, text)
    terminal.say(f"wrote {arguments.write}")
    return OK


def _format_of(file: Path | None) -> str:
    """What a file's suffix says; text where there is no file, or no suffix. Raises `CannotRunError`."""
    if file is None or not file.suffix:
        return "text"
    known = SUFFIXES.get(file.suffix.lower())
    if known is None:
        raise CannotRunError(
            f"`{file}`: `{file.suffix}` is no format of ours; {', '.join(SUFFIXES)} are, or say one by --output"
        )
    return known


def _chosen(graph: RuleGraph, arguments: argparse.Namespace) -> list[DecisionKey]:
    """The decisions that all given filters let through. Raises `CannotRunError` for names that do not exist."""
    for kind in arguments.kind or ():
        if kind not in KINDS:
            close = nearest(kind, KINDS)
            raise CannotRunError(
                f"there is no kind `{kind}`" + (f"; did you mean `{close}`?" if close else "")
            )
    names = []
    for name in arguments.decision or ():
        try:
            names.append(graph.decision(name).key)
        except UnknownDecision as error:
            raise CannotRunError(str(error)) from None
    return [
        key
        for key, decision in graph.decisions.items()
        if (arguments.decision is None or key in names)
        and (arguments.kind is None or key.kind in arguments.kind)
        and (arguments.component is None or decision.components & set(arguments.component))
    ]
