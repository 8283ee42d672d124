"""`koordpolicy export`: policies as the configuration that Koordinator reads, or as admission policies of API servers."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from koordpolicy.cli.bundle import graph_of
from koordpolicy.cli.command import FINDINGS, OK, CannotRunError
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.exchange.documents import Taken
from koordpolicy.graph.exchange.exporting import export
from koordpolicy.graph.exchange.scheduling_export import export_scheduler
from koordpolicy.language.documents.writing import yaml_text
from koordpolicy.manager.native.admission import native_admission
from koordpolicy.manager.webhooks.configuration import NO_CONTROL_PLANE


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Write the objects, and tell what they do not say."""
    graph = graph_of(arguments.paths, arguments.compiler)
    if arguments.scheduler and arguments.admission_policies:
        raise CannotRunError("--scheduler and --admission-policies are two exports: give one of them")
    if arguments.scheduler:
        config, table = export_scheduler(graph)
        if config is None:
            raise CannotRunError("there is no SchedulingProfile in these policies")
        left = _left(table)
        text = json_text(config, indent=2) if arguments.output == "json" else yaml_text([config])
    else:
        objects, left = (
            _admission_policies(graph)
            if arguments.admission_policies
            else _configuration(graph, arguments.config_namespace)
        )
        text = (
            json_text({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2)
            if arguments.output == "json"
            else yaml_text(objects)
        )
    if arguments.write is None:
        terminal.print(text.rstrip("\n"))
    else:
        try:
            arguments.write.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CannotRunError(f"`{arguments.write}` cannot be written: {error.strerror}") from None
        terminal.say(f"wrote {arguments.write}")
    for what, reason in left:
        terminal.say(f"not written: {what}: {reason}")
    return FINDINGS if left else OK


_Left = list[tuple[str, str]]
"""What is not written, each with the reason."""


def _left(table: Sequence[Taken]) -> _Left:
    return [(row.source, row.reason) for row in table if row.reason]


def _configuration(graph: RuleGraph, namespace: str) -> tuple[Sequence[Mapping[str, Any]], _Left]:
    exported = export(graph, namespace)
    return exported.objects, _left(exported.table)


def _admission_policies(graph: RuleGraph) -> tuple[Sequence[Mapping[str, Any]], _Left]:
    found = native_admission(graph, (NO_CONTROL_PLANE,))
    objects = [one for policy in found.policies.values() for one in (policy.object(), policy.binding())]
    left = [(f"{one.target} ({one.place})" if one.place else one.target, one.reason) for one in found.staying]
    return objects, left
