"""`koordpolicy export`: policies as the configuration that Koordinator reads, or as admission policies of API servers."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from koordpolicy.cli.bundle import OWN, graph_of
from koordpolicy.cli.command import LEFT_OUT, OK, CannotRunError
from koordpolicy.cli.output_files import put_text
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
        put_text(arguments.write, text)
        terminal.say(f"wrote {arguments.write}")
    for what, reason, layer in left:
        whose = "" if layer == OWN else f" (of the pack `{layer}`)"
        terminal.say(f"not written{whose}: {what}: {reason}")
    return LEFT_OUT if any(layer == OWN for _, _, layer in left) else OK


_Left = list[tuple[str, str, str]]
"""What is not written, each with the reason and the name of the layer that says it."""


def _left(table: Sequence[Taken]) -> _Left:
    return [(row.source, row.reason, row.layer or OWN) for row in table if row.reason]


def _configuration(graph: RuleGraph, namespace: str) -> tuple[Sequence[Mapping[str, Any]], _Left]:
    exported = export(graph, namespace)
    return exported.objects, _left(exported.table)


def _admission_policies(graph: RuleGraph) -> tuple[Sequence[Mapping[str, Any]], _Left]:
    found = native_admission(graph, (NO_CONTROL_PLANE,))
    objects = [one for policy in found.policies.values() for one in (policy.object(), policy.binding())]
    layers = {unit.target: unit.layer_name for unit in sorted(graph.units, key=lambda unit: unit.layer)}
    left = [
        (f"{one.target} ({one.place})" if one.place else one.target, one.reason, layers.get(one.target, OWN))
        for one in found.staying
    ]
    return objects, left
