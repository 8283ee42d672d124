"""`koordpolicy export`: policies as the configuration that Koordinator reads."""

import argparse

from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import FINDINGS, OK, CannotRunError
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph.exchange.exporting import export
from koordpolicy.graph.exchange.scheduling_export import export_scheduler
from koordpolicy.language.documents.writing import yaml_text


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Write the objects, and tell what they do not say."""
    graph = graph_of(arguments.paths, arguments.compiler)
    if arguments.scheduler:
        config, table = export_scheduler(graph)
        if config is None:
            raise CannotRunError("there is no SchedulingProfile in these policies")
        text = json_text(config, indent=2) if arguments.output == "json" else yaml_text([config])
    else:
        exported = export(graph, arguments.config_namespace)
        table = exported.table
        text = (
            json_text({"apiVersion": "v1", "kind": "List", "items": exported.objects}, indent=2)
            if arguments.output == "json"
            else yaml_text(exported.objects)
        )
    if arguments.write is None:
        terminal.print(text.rstrip("\n"))
    else:
        try:
            arguments.write.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CannotRunError(f"`{arguments.write}` cannot be written: {error.strerror}") from None
        terminal.say(f"wrote {arguments.write}")
    left = [row for row in table if row.reason]
    for row in left:
        terminal.say(f"not written: {row.source}: {row.reason}")
    return FINDINGS if left else OK
