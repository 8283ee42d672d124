"""The policies of the console: read once from files, or again and again from the policy objects of a live cluster."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from koordpolicy.cli.bundle import compile_tree, compiled
from koordpolicy.cli.bundles import meant
from koordpolicy.diagnostics import Severity
from koordpolicy.graph import Compilation, Compiler, RuleGraph
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import Cluster
from koordpolicy.runtime.policies.objects import read_policies
from koordpolicy.runtime.process import CannotStart
from koordpolicy.source import Tree, read_tree
from koordpolicy.source.revision import SourceTrouble


@dataclass(frozen=True, slots=True)
class ConsolePolicies:
    """What the page shows of policies: compiled, the files of the bundle by the names that the page shows, and where they are from."""

    compilation: Compilation
    graph: RuleGraph
    files: Mapping[str, str]
    name: str


def policies_of_files(paths: list[str], compiler: Compiler | None) -> ConsolePolicies:
    """The policies below paths; their files are named from their folder, where they would be by whole paths of this host.

    Raises `CannotRunError`, which names files as the command line does.
    """
    compilation, graph = compiled(paths, compiler)
    tree = read_tree(meant(paths)) if paths else Tree()
    found = ConsolePolicies(compilation, graph, tree.files, ", ".join(paths) or "the built-in pack alone")
    whole = [Path(file) for file in tree.files if Path(file).is_absolute()]
    if not whole:
        return found
    folder = os.path.commonpath([file.parent for file in whole])
    files = {
        str(Path(file).relative_to(folder)) if Path(file).is_absolute() else file: text
        for file, text in tree.files.items()
    }
    if len(files) < len(tree.files):  # two files of one name, from here and from there
        return found
    again = compile_tree(Tree(files), compiler)
    return found if again.graph is None else ConsolePolicies(again, again.graph, files, found.name)


class FollowedPolicies:
    """The policy objects of a cluster. `trouble` says why those that answer are not the latest; empty where they are."""

    def __init__(self, cluster: Cluster, compiler: Compiler | None) -> None:
        self._cluster = cluster
        self._compiler = compiler
        self._seen = ""
        self.trouble = ""

    async def first(self) -> ConsolePolicies:
        """Those to begin with. Raises `CannotStart` where there are none or they do not compile, and `KubeError`."""
        found = await self.changed()
        if found is None:
            raise CannotStart(f"{self.trouble}: mend them, or name policies by `-p`")
        return found

    async def changed(self) -> ConsolePolicies | None:
        """The policies where they are others than at the last look, and good. Raises `KubeError`."""
        try:
            found = await read_policies(self._cluster)
        except KubeError:
            self._seen = ""
            raise
        if isinstance(found, SourceTrouble):
            self._seen, self.trouble = "", found.message
            return None
        if found.digest == self._seen:
            return None
        self._seen, self.trouble = found.digest, ""
        compilation = await asyncio.to_thread(compile_tree, Tree(dict(found.files)), self._compiler)
        if compilation.graph is None:
            first = min(
                (one for one in compilation.found if one.severity is Severity.ERROR),
                key=lambda one: one.order,
            )
            self.trouble = f"the cluster's policies do not compile: {first.message} ({first.span.file}:{first.span.start.line})"
            return None
        return ConsolePolicies(
            compilation, compilation.graph, found.files, "the policy objects of the cluster"
        )
