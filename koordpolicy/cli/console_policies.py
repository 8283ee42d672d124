"""The policies of the console: read once from files, or again and again from files or from the policy objects of a live cluster."""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from koordpolicy.cli.bundle import compile_paths, compile_tree, compiled
from koordpolicy.cli.bundles import meant
from koordpolicy.cli.command import CannotRunError
from koordpolicy.diagnostics import Severity
from koordpolicy.graph import Compilation, Compiler, RuleGraph
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.port import Cluster
from koordpolicy.runtime.policies.objects import read_policies
from koordpolicy.runtime.policies.packs import BARE
from koordpolicy.runtime.process import CannotStart
from koordpolicy.source import Tree, read_tree
from koordpolicy.source.paths import open_source
from koordpolicy.source.revision import Revision, SourceTrouble, digest_of

_AGAIN: Final = 5.0
"""Seconds until files are looked at again that could not be taken."""


@dataclass(frozen=True, slots=True)
class ConsolePolicies:
    """What the page shows of policies: compiled, the files of the bundle by the names that the page shows, and where they are from.

    `digest` is that of the tree, by which processes speak of the revision; empty where it is not known yet.
    """

    compilation: Compilation
    graph: RuleGraph
    files: Mapping[str, str]
    name: str
    digest: str = ""


def policies_of_files(paths: list[str], compiler: Compiler | None) -> ConsolePolicies:
    """The policies below paths; their files are named from their folder, where they would be by whole paths of this host.

    Raises `CannotRunError`, which names files as the command line does.
    """
    compilation, graph = compiled(paths, compiler)
    return _of_files(paths, compilation, graph, compiler)


def _of_files(
    paths: list[str], compilation: Compilation, graph: RuleGraph, compiler: Compiler | None
) -> ConsolePolicies:
    tree = read_tree(meant(paths)) if paths else Tree()
    name = ", ".join(paths) or "the built-in pack alone"
    digest = "" if paths else digest_of(dict([BARE]))  # as processes count it that are given none
    found = ConsolePolicies(compilation, graph, tree.files, name, digest)
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
    return found if again.graph is None else ConsolePolicies(again, again.graph, files, name, digest)


class FollowedFiles:
    """The policies below paths, watched as processes watch theirs."""

    def __init__(self, paths: list[str], compiler: Compiler | None) -> None:
        self._paths = paths
        self._compiler = compiler
        self._revisions: dict[str, Revision] = {}
        self._changed = asyncio.Event()
        self._seen: object = None
        self._trouble = ""

    async def follow(self, tell: Callable[[ConsolePolicies], None], behind: Callable[[str], None]) -> None:
        """Tell of those there are, and of others as soon as there are good ones. Never ends by itself.

        `behind` is told why those that answer are not the latest, and by an empty text that they are.
        """
        async with asyncio.TaskGroup() as group:
            for path in dict.fromkeys([*self._paths, *meant(self._paths)]):
                group.create_task(self._watch(path), name=f"policies: {path}")
            while True:
                with suppress(TimeoutError):
                    # What was taken away while it was read is there again without a change that would tell.
                    async with asyncio.timeout(_AGAIN if self._trouble else None):
                        await self._changed.wait()
                self._changed.clear()
                found = await asyncio.to_thread(self._read)
                behind(self._trouble)
                if found is not None:
                    tell(found)

    async def _watch(self, path: str) -> None:
        async for item in open_source(path).revisions():
            if isinstance(item, Revision):
                self._revisions[path] = item
            else:
                self._revisions.pop(path, None)
            self._changed.set()

    def _read(self) -> ConsolePolicies | None:
        """The policies where they are others than at the last look, and good; blocks."""
        tree = read_tree(meant(self._paths))
        digest = self._digest(tree)
        seen = dict(tree.files), tuple(tree.found), digest
        if seen == self._seen:
            return None
        self._seen = seen
        try:
            compilation = compile_paths(self._paths, self._compiler)
        except CannotRunError as error:
            self._trouble = f"the policies cannot be read: {error}"
            return None
        if compilation.graph is None:
            self._trouble = _not_compiling("the policies do not compile", compilation)
            return None
        self._trouble = ""
        found = _of_files(self._paths, compilation, compilation.graph, self._compiler)
        return replace(found, digest=digest)

    def _digest(self, tree: Tree) -> str:
        """The digest by which processes that follow the one path speak of it; of several paths that of all files."""
        whole = meant(self._paths)
        found = self._revisions.get(whole[0]) if len(whole) == 1 else None
        return digest_of(tree.files) if found is None else found.digest


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
            self.trouble = _not_compiling("the cluster's policies do not compile", compilation)
            return None
        name = "the policy objects of the cluster"
        return ConsolePolicies(compilation, compilation.graph, found.files, name, found.digest)


def _not_compiling(what: str, compilation: Compilation) -> str:
    """The first error in a sentence."""
    first = min(
        (one for one in compilation.found if one.severity is Severity.ERROR), key=lambda one: one.order
    )
    return f"{what}: {first.message} ({first.span.file}:{first.span.start.line})"
