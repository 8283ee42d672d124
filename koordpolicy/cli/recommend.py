"""`koordpolicy recommend`: what workloads should request, as Recommendation objects say, and patches for manifests in Git."""

import argparse
import asyncio
import os
import random
from collections.abc import Sequence
from typing import Final

from koordpolicy.cli.command import FINDINGS, OK, CannotRunError
from koordpolicy.cli.exchange import read_objects
from koordpolicy.cli.recommendations.found import TEMPLATES, FoundRecommendation, find
from koordpolicy.cli.recommendations.patches import patches_of, write
from koordpolicy.cli.recommendations.text import data, table
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.kube import resources
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.errors import KubeError, NotFound
from koordpolicy.kube.port import Cluster
from koordpolicy.kube.resources import Resource
from koordpolicy.model.reading import Json, mapping, text
from koordpolicy.model.unreadable import readable

_IN_FILES: Final = "what `kubectl get recommendations,deployments -A -o yaml` printed"
_KIND: Final = "Recommendation"
_WORKLOADS: Final = tuple(
    resource for resource in resources.RESOURCES if resource.kind in TEMPLATES and not resource.custom
)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Show, and write patches if they are wanted."""
    recommendations, workloads = _objects(arguments)
    found, unread = find(recommendations, workloads)
    for why in unread:
        terminal.say(f"unreadable: {why}")
    found = _chosen(found, arguments.namespace, arguments.names)
    if not found:
        raise CannotRunError(
            "there are no Recommendations: create one for each workload (analysis.koordinator.sh/v1alpha1), and a running "
            "`koordpolicy manager` fills them"
        )
    if arguments.output == "json":
        terminal.print(json_text(data(found), indent=2))
    else:
        terminal.print(table(found, namespaces=arguments.namespace is None))
        for caution in sorted({one.caution for one in found if one.caution}):
            terminal.say(f"* {caution}")
    return OK if arguments.patch is None else _write(arguments, found, terminal)


def _write(arguments: argparse.Namespace, found: Sequence[FoundRecommendation], terminal: Terminal) -> int:
    made = patches_of(found, low_confidence=arguments.low_confidence)
    for file in write(arguments.patch, made):
        terminal.say(f"wrote {file}")
    for note in made.notes:
        terminal.say(f"note: {note}")
    for why in made.left_out:
        terminal.say(f"no patch: {why}")
    return FINDINGS if made.left_out else OK


def _chosen(
    found: Sequence[FoundRecommendation], namespace: str | None, names: Sequence[str]
) -> list[FoundRecommendation]:
    """Those of a namespace and of these names. Raises `CannotRunError` for a name that nothing has."""
    inside = [one for one in found if namespace in (None, one.namespace)]
    for name in names:
        if not any(name in (one.name, one.target.name, one.workload) for one in inside):
            raise CannotRunError(f"no Recommendation, and no workload of one, is called `{name}`")
    return [
        one for one in inside if not names or not {one.name, one.target.name, one.workload}.isdisjoint(names)
    ]


def _objects(arguments: argparse.Namespace) -> tuple[list[Json], list[Json]]:
    """The Recommendations and the workloads of files or of the cluster. Raises `CannotRunError`."""
    if arguments.filename:
        objects = read_objects(arguments.filename)
        return (
            [one for one in objects if one.get("kind") == _KIND and _of_koordinator(one)],
            [one for one in objects if one.get("kind") in TEMPLATES],
        )
    try:
        connection = Connection.load(arguments.kubeconfig, arguments.context, os.environ)
        return asyncio.run(_live(connection, arguments.namespace))
    except ConfigurationError as error:
        raise CannotRunError(f"{error}; or `-f FILE`: {_IN_FILES}") from None
    except KubeError as error:
        raise CannotRunError(str(error)) from None


def _of_koordinator(obj: Json) -> bool:
    """Not the policy kind of the same name."""
    return str(obj.get("apiVersion", "")).partition("/")[0] == resources.RECOMMENDATIONS.group


async def _live(connection: Connection, namespace: str | None) -> tuple[list[Json], list[Json]]:
    async with connect(connection, jitter=random.random, component="recommend") as cluster:
        try:
            listed = await cluster.list(resources.RECOMMENDATIONS, namespace=namespace)
        except NotFound:
            raise CannotRunError(
                "the cluster does not know Recommendations; apply deploy/crds first"
            ) from None
        found: list[Json] = list(listed.items)
        kinds = {readable(_target_kind, one) for one in found}
        workloads: list[Json] = []
        for resource in _WORKLOADS:
            if resource.kind in kinds:
                workloads.extend(await _workloads(cluster, resource, namespace))
        return found, workloads


def _target_kind(obj: Json) -> str:
    return text(mapping(mapping(mapping(obj, "spec"), "target"), "workload"), "kind")


async def _workloads(cluster: Cluster, resource: Resource, namespace: str | None) -> list[Json]:
    listed = await cluster.list(resource, namespace=namespace)
    # Items of a list do not say their kind.
    return [{**one, "kind": resource.kind} for one in listed.items]
