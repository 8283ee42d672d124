"""`koordpolicy explain pod`: where a pod goes and why, or what would help it, on a cluster or a picture of one."""

import argparse
import asyncio
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.simulation.explained import tables
from koordpolicy.cli.simulation.words import DIM, Page
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.diagnostics.render import render
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.api import ConfigurationError, Connection, connect
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import PODS, RESOURCES, resource_of
from koordpolicy.kube.snapshot import Snapshot, SnapshotError, read_snapshot, take_snapshot
from koordpolicy.language.documents import read_documents
from koordpolicy.model.pod import Pod, read_pod
from koordpolicy.model.reading import mapping
from koordpolicy.model.unreadable import Unreadable, readable
from koordpolicy.runtime.clock import now_ns
from koordpolicy.scheduler import Decision
from koordpolicy.scheduler.feed import HEARD, hear
from koordpolicy.scheduler.pods import scheduler_of
from koordpolicy.scheduler.profile import KIND
from koordpolicy.scheduler.scheduler import DEFAULT_PROFILE, Scheduler
from koordpolicy.simulator.explanation import placement
from koordpolicy.simulator.journal import Explained
from koordpolicy.source import read_tree


@dataclass(frozen=True, slots=True)
class Found:
    """A pod with the decision on it, `profile` the one that was asked; `on` is where it is already."""

    pod: Pod
    on: str
    profile: str
    decision: Decision
    table: Mapping[str, Any]


def explain_pod(graph: RuleGraph, arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Say where the pod of the arguments goes, or why nowhere. Raises `CannotRunError`."""
    cluster = _picture(arguments, terminal)
    found = _found(graph, cluster, str(arguments.name), max(0, arguments.top), terminal)
    if arguments.output == "json":
        terminal.print(json_text(_plain(found), indent=2))
    else:
        page = Page(terminal.width, terminal.colour())
        terminal.print("\n".join(_lines(found, page)))
    return OK


# --- the cluster ----------------------------------------------------------------------------------


def _picture(arguments: argparse.Namespace, terminal: Terminal) -> Snapshot:
    """The cluster as it stands in a file or in manifests, or as it is now."""
    if arguments.snapshot and arguments.filename:
        raise CannotRunError("a snapshot and manifests are two pictures: give `--snapshot` or `--filename`")
    try:
        if arguments.snapshot:
            return _read(Path(arguments.snapshot), terminal)
        if arguments.filename:
            return _manifests(arguments.filename)
        return asyncio.run(_live(Connection.load(arguments.kubeconfig, arguments.context)))
    except (ConfigurationError, SnapshotError, KubeError) as error:
        raise CannotRunError(str(error)) from None


def _read(path: Path, terminal: Terminal) -> Snapshot:
    """A snapshot from its file. What it was not asked to hold when it was taken is told."""
    found = read_snapshot(path)
    held = {*found.objects, *found.absent}
    lacking = [str(heard.resource) for heard in HEARD if str(heard.resource) not in held]
    if lacking:
        terminal.say(f"the snapshot is an old one without {', '.join(lacking)}: take it anew to count them")
    return found


async def _live(connection: Connection) -> Snapshot:
    async with connect(connection, jitter=random.random, component="explain") as cluster:
        return await take_snapshot(cluster, now_ns())


def _manifests(paths: list[str]) -> Snapshot:
    tree, found = read_tree(paths), Diagnostics()
    found.extend(tree.found)
    objects: dict[str, list[Object]] = {}
    for name, text in tree.files.items():
        for document in read_documents(name, text, found):
            for obj in _each(document.data):
                resource = resource_of(str(obj.get("apiVersion")), str(obj.get("kind")), RESOURCES)
                if resource is not None and isinstance(obj.get("metadata"), Mapping):
                    objects.setdefault(str(resource), []).append(obj)
    if len(found):
        raise CannotRunError("the manifests cannot be read\n\n" + render("text", found, tree.files))
    return Snapshot(now_ns(), objects)


def _each(data: Any) -> Iterator[Mapping[str, Any]]:
    """An object, or those of a list such as `kubectl get -o yaml` gives."""
    if isinstance(data, Mapping) and str(data.get("kind", "")).endswith("List"):
        yield from (one for one in data.get("items") or () if isinstance(one, Mapping))
    elif isinstance(data, Mapping):
        yield data


# --- the question ---------------------------------------------------------------------------------


def _found(graph: RuleGraph, cluster: Snapshot, name: str, top: int, terminal: Terminal) -> Found:
    pod = _pod(cluster, name)
    wanted = scheduler_of(pod)
    profile = wanted if wanted in graph.subjects(KIND) else DEFAULT_PROFILE
    if profile != wanted:
        terminal.say(f"the policies have no profile `{wanted}`; `{profile}` is asked instead")
    scheduler = Scheduler(graph, lambda: cluster.taken, profile=profile, explained=top)
    for heard in HEARD:
        # In the order in which a server lists them, since the first of equal nodes is taken.
        for obj in sorted(cluster.of(heard.resource), key=_key):
            if pod.node_name and heard.resource is PODS and _key(obj) == pod.key:
                continue  # it is asked of as if it came anew; one that waits may be promised a node already
            why = hear(heard, scheduler, obj)
            if why is not None:
                terminal.say(f"{heard.resource} {'/'.join(_key(obj))} is unreadable: {why.reason}")
    spec = {key: value for key, value in mapping(pod.raw, "spec").items() if key != "nodeName"}
    free = replace(pod, node_name="", raw={**pod.raw, "spec": spec}) if pod.node_name else pod
    decision = scheduler.rehearse(free)
    view = scheduler.question(free).view
    table = placement(graph, scheduler.profile, Explained(0, decision, {}, dict(view.facts)))
    return Found(pod, pod.node_name, profile, decision, table)


def _pod(cluster: Snapshot, name: str) -> Pod:
    namespace, _, short = name.rpartition("/")
    key = (namespace or "default", short)
    for obj in cluster.pods:
        if _key(obj) == key:
            pod = readable(read_pod, obj)
            if isinstance(pod, Unreadable):
                raise CannotRunError(f"the pod `{name}` is unreadable: {pod.reason}")
            return pod
    others = sorted("/".join(_key(obj)) for obj in cluster.pods if _key(obj)[1] == short)
    help = f"; there is `{others[0]}`" if others else f", of {len(cluster.pods):,} pods"
    raise CannotRunError(f"there is no pod `{'/'.join(key)}`{help}")


def _key(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or "default"), str(metadata["name"])


# --- the answer -----------------------------------------------------------------------------------


def _plain(found: Found) -> dict[str, Any]:
    decision, preemption = found.decision, found.decision.preemption
    return {
        **{name: value for name, value in found.table.items() if name not in ("atSeconds", "node")},
        "profile": found.profile,
        "on": found.on or None,
        "node": decision.node or None,
        "message": decision.message.partition("\n")[0] or None,
        "advice": list(decision.advice),
        "preemption": None
        if preemption is None
        else {
            "node": preemption.node,
            "victims": ["/".join(victim.pod) for victim in preemption.victims],
            "violations": preemption.violations,
        },
        "revision": decision.digest,
    }


def _lines(found: Found, page: Page) -> Iterator[str]:
    decision = found.decision
    name = "/".join(found.pod.key)
    if decision.placed and found.on:
        same = (
            "where it would go again" if decision.node == found.on else f"but would go to {decision.node} now"
        )
        yield page.heading(f"{name} is on {found.on}, {same}", found.profile)
    elif decision.placed:
        yield page.heading(f"{name} would go to {decision.node}", found.profile)
    elif found.on:
        yield page.heading(f"{name} is on {found.on}, but would find no node now", found.profile)
    else:
        yield page.heading(f"{name} finds no node", found.profile)
    if not decision.placed:
        yield from page.wrapped(decision.message.partition("\n")[0], 2)
        yield from _ways_out(decision, page)
        yield ""
    yield from tables(found.table, page)


def _ways_out(decision: Decision, page: Page) -> Iterator[str]:
    preemption = decision.preemption
    if preemption is not None:
        gone = ", ".join("/".join(victim.pod) for victim in preemption.victims)
        broken = f", which breaks {preemption.violations} disruption budgets" if preemption.violations else ""
        yield from page.wrapped(
            f"Room would be made on {preemption.node}: {gone} would have to go{broken}.", 2
        )
    if decision.advice:
        yield page.paint("  What would help:", DIM)
        for line in decision.advice:
            yield from page.wrapped(f"{line}.", 6, "    ")
