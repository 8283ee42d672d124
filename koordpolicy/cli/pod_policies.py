"""By which policies a question about a pod is answered, and whether the cluster's schedulers decide by the same."""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from koordpolicy.cli.at_flag import moment_of
from koordpolicy.cli.bundle import graph_of, graph_of_files
from koordpolicy.cli.command import CannotRunError
from koordpolicy.diagnostics.wording import worded
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.errors import KubeError, NotFound
from koordpolicy.kube.port import Cluster, Object
from koordpolicy.kube.resources import POLICY_REVISIONS
from koordpolicy.model.policy_revision import InstanceState, PolicyRevision, from_json
from koordpolicy.model.reading import ObjectError
from koordpolicy.runtime.policies.objects import ORIGIN, read_policies
from koordpolicy.source import read_tree
from koordpolicy.source.revision import Revision, SourceTrouble, digest_of

SCHEDULER: Final = "scheduler"
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class LiveRevision:
    """What schedulers of the cluster decide by. `also` are revisions that others of them decide by meanwhile."""

    revision: PolicyRevision
    schedulers: tuple[str, ...]
    also: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """The schedulers by name."""
        return f"scheduler{'s' if len(self.schedulers) > 1 else ''} {', '.join(self.schedulers)}"


@dataclass(frozen=True, slots=True)
class Policies:
    """The graph that answers, where it is from, and what is to be said of it.

    `live` says whether schedulers of the cluster decide by the same; None where that is not known.
    """

    graph: RuleGraph
    origin: str
    revision: str
    live: bool | None
    note: str

    @property
    def short(self) -> str:
        """The revision as people write it: as many digits as tell it from others."""
        head, mark, digits = self.revision.rpartition(":")
        return f"{head}{mark}{digits[:_DIGITS]}"

    @property
    def told(self) -> str:
        """Where they are from, and both of their names: the revision as `status` has it, the rules as `simulate` and `diff` do."""
        return f"policies: {self.origin}, {self.short}; rules {self.graph.digest[:_DIGITS]}"

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "origin": self.origin,
            "revision": self.revision,
            "digest": self.graph.digest,
            "live": self.live,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class ClusterPolicies:
    """What the cluster says of policies: the live revision, policy objects where they are wanted, or why not."""

    live: LiveRevision | None = None
    objects: Revision | None = None
    trouble: str = ""


async def ask_cluster(cluster: Cluster, arguments: argparse.Namespace) -> ClusterPolicies:
    """Ask a cluster what its schedulers decide by, and for its policy objects where they are to answer.

    Raises `CannotRunError` where they are wanted and cannot be had.
    """
    live, trouble = None, ""
    try:
        live = live_revision((await cluster.list(POLICY_REVISIONS)).items)
    except NotFound:
        trouble = "the cluster has no PolicyRevisions"
    except KubeError as error:
        trouble = f"the cluster's PolicyRevisions cannot be read: {worded(error)}"
    wanted = bool(arguments.policies_from_cluster)
    if not wanted and (arguments.policies or live is None or live.revision.origin != ORIGIN):
        return ClusterPolicies(live, None, trouble)
    try:
        found = await read_policies(cluster)
    except KubeError as error:
        raise CannotRunError(f"the policy objects cannot be read: {worded(error)}") from None
    if isinstance(found, SourceTrouble):
        raise CannotRunError(
            f"{found.message}: leave `--policies-from-cluster` out, or name policies by `-p`"
        )
    return ClusterPolicies(live, found, trouble)


def live_revision(objects: Iterable[Object]) -> LiveRevision | None:
    """The revision that most schedulers decide by; None where none says so."""
    found: list[LiveRevision] = []
    for obj in objects:
        try:
            revision = from_json(obj)
        except ObjectError:
            continue
        names = tuple(
            sorted(
                one.name
                for one in revision.status.instances
                if one.component == SCHEDULER and one.state is InstanceState.ACTIVE
            )
        )
        if names:
            found.append(LiveRevision(revision, names))
    if not found:
        return None
    found.sort(key=lambda one: (-len(one.schedulers), one.revision.revision))
    return replace(found[0], also=tuple(one.revision.revision for one in found[1:]))


def policies_of(arguments: argparse.Namespace, heard: ClusterPolicies | None) -> Policies:
    """The policies that answer. `heard` is None where no cluster was asked. Raises `CannotRunError`."""
    objects = None if heard is None else heard.objects
    live = None if heard is None else heard.live
    paths = list(arguments.policies)
    if not paths and objects is None and live is not None:
        paths = _followed_here(live.revision)
    if objects is not None:
        graph, origin, digest = (
            graph_of_files(objects.files, arguments.compiler),
            "the cluster",
            objects.digest,
        )
    else:
        graph = graph_of(paths, arguments.compiler)
        origin = ", ".join(paths) or "the built-in pack alone"
        digest = digest_of(_files(paths)) if paths else ""
    name = objects.name if objects is not None else f"sha256:{digest or graph.digest}"
    graph = graph.at(moment_of(arguments.at))
    if live is None:
        why = "no cluster was asked" if heard is None else heard.trouble or "none reports there"
        note = f"Schedulers may decide by others: {why}."
        alone = not paths and objects is None
        return Policies(graph, origin, name, None, f"{note} {_GIVE}" if alone else note)
    same = bool(digest) and digest == live.revision.digest
    said = f"{live.who} decide{'' if len(live.schedulers) > 1 else 's'} by"
    if same:
        note = f"The same as {said}: {live.revision.name}."
        name = live.revision.revision
    else:
        note = (
            f"Not known to be live: {said} {live.revision.revision} ({live.revision.name}) from"
            f" {live.revision.origin or 'a place that is not named'}, and may answer otherwise."
        )
        if not paths and objects is None:
            note += f" {_how(live)}"
    if live.also:
        note += f" Other schedulers decide by {', '.join(live.also)} now."
    return Policies(graph, origin, name, same, note)


def _followed_here(revision: PolicyRevision) -> list[str]:
    """The directory that schedulers follow, where it is on this machine, too, with just what they decide by; else nothing."""
    origin = revision.origin
    if not Path(origin).is_absolute() or not Path(origin).is_dir():
        return []
    return [origin] if digest_of(_files([origin])) == revision.digest else []


def _how(live: LiveRevision) -> str:
    """What to name by `-p` for policies that the cluster does not hold."""
    revision = live.revision
    if revision.commit:
        what = f"a checkout of commit {revision.commit[:_DIGITS]}"
    elif Path(revision.origin).is_absolute():
        what = f"a copy of {revision.origin}, as it is where {live.who} {'run' if len(live.schedulers) > 1 else 'runs'}"
    else:
        what = "a copy of what they follow"
    return f"The cluster does not hold these policies: name {what}, by `-p PATH`."


_GIVE: Final = "Name theirs by `-p PATH`, or `--policies-from-cluster` where they are objects."


def _files(paths: list[str]) -> Mapping[str, str]:
    """The files as a process that follows the one directory names them; as they are named here for several."""
    files = read_tree(paths).files
    if len(paths) != 1 or not Path(paths[0]).is_dir():
        return files
    head = f"{paths[0].rstrip('/')}/"
    return {name.removeprefix(head): text for name, text in files.items()}
