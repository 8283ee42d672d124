"""`koordpolicy graph`: the rule graph as a picture, or the list of its decisions."""

import argparse
from pathlib import Path

from koordpolicy.cli.bundle import add_paths, graph_of
from koordpolicy.cli.command import OK, CannotRunError, Command
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.drawing import FORMATS, Detail, picture_of
from koordpolicy.graph.graph import UnknownDecision
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.language.facts import Component
from koordpolicy.language.kinds import KINDS


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "-f",
        "--format",
        choices=["list", *FORMATS],
        help="list of decisions, Graphviz, Mermaid or a finished picture (default: by the output's suffix, else list)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write into a file")
    parser.add_argument(
        "--decision", action="append", metavar="NAME", help="this decision only; may be repeated"
    )
    parser.add_argument(
        "--kind", action="append", metavar="KIND", help="decisions of this kind; may be repeated"
    )
    parser.add_argument(
        "--component",
        action="append",
        choices=[str(component) for component in Component],
        metavar="NAME",
        help="decisions that this component asks; may be repeated: " + ", ".join(Component),
    )
    parser.add_argument(
        "--detail",
        choices=[str(detail) for detail in Detail],
        help="draw every rule with what it reads, or documents (default: by the number of decisions)",
    )


_SUFFIXES = {".svg": "svg", ".dot": "dot", ".gv": "dot", ".mmd": "mermaid", ".md": "mermaid"}


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    graph = graph_of(arguments.paths, arguments.compiler)
    keys = _chosen(graph, arguments)
    if not keys:
        raise CannotRunError("no decision fits; `koordpolicy graph` lists all of them")
    suffix = arguments.output.suffix if arguments.output is not None else ""
    format = arguments.format or _SUFFIXES.get(suffix, "list")
    if format == "list":
        text = "".join(f"{key}\n" for key in keys)
    else:
        detail = Detail(arguments.detail) if arguments.detail else None
        text = FORMATS[format](picture_of(graph, keys, detail))
    if arguments.output is None:
        terminal.print(text)
        return OK
    try:
        arguments.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotRunError(f"`{arguments.output}` cannot be written: {error.strerror}") from None
    terminal.say(f"wrote {arguments.output}")
    return OK


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


COMMAND = Command(_add, _run)
