"""From paths on the command line to a compiled bundle."""

import argparse
from collections.abc import Mapping, Sequence

from koordpolicy.cli.command import CannotRunError
from koordpolicy.diagnostics import Diagnostic, Diagnostics
from koordpolicy.diagnostics.render import render
from koordpolicy.graph import Compilation, Compiler, Layer, RuleGraph
from koordpolicy.runtime.policies.packs import BUILT_IN, OWN, find_pack
from koordpolicy.source import Tree, read_tree

__all__ = [
    "BUILT_IN",
    "OWN",
    "add_paths",
    "compile_paths",
    "compile_tree",
    "compiled",
    "demand_files",
    "find_pack",
    "graph_of",
    "graph_of_files",
]


def add_paths(parser: argparse.ArgumentParser, *, option: bool = False) -> None:
    """Declare the paths of policies: positional, or as the option `--policies`."""
    if option:
        parser.add_argument(
            "-p",
            "--policies",
            metavar="PATH",
            nargs="+",
            default=[],
            help="files and directories of policies; the built-in pack alone without",
        )
    else:
        parser.add_argument(
            "paths",
            metavar="PATH",
            nargs="*",
            default=["."],
            help="files and directories of policies (default: .)",
        )


def compile_paths(paths: Sequence[str], compiler: Compiler | None = None) -> Compilation:
    """Read and compile; what could not be read stands among the findings.

    Raises `CannotRunError` where there is nothing to read at all. No paths stand for the built-in pack alone.
    A `compiler` takes over what it has compiled before.
    """
    tree = read_tree(paths)
    if paths:
        demand_files(tree, paths)
    return compile_tree(tree, compiler)


def demand_files(tree: Tree, paths: Sequence[str]) -> None:
    """Raise `CannotRunError` where there was nothing to read at or below the paths."""
    if not tree.touched:
        why = "\n".join(map(told, tree.found))
        raise CannotRunError(
            why or f"there is no policy file (*.yaml, *.yml) below {', '.join(map(_shown, paths))}"
        )


def compile_tree(tree: Tree, compiler: Compiler | None = None) -> Compilation:
    """Compile what was read; see `compile_paths`."""
    compilation = (compiler or Compiler(find_pack)).compile(Layer(OWN, tree.files))
    found = Diagnostics()
    found.extend(tree.found)
    found.extend(compilation.found)
    graph = None if found.has_errors else compilation.graph
    return Compilation(graph, found, compilation.units, compilation.sources)


def told(found: Diagnostic) -> str:
    """A finding of a tree in a sentence, for where no report is made: with its place, unless that is in its words."""
    file = found.span.file
    place = "" if f"`{file}`" in found.message else f"{file}: "
    return f"{place}{found.message}; {found.help}" if found.help else f"{place}{found.message}"


def _shown(path: str) -> str:
    return f"`{path}`"


def compiled(paths: Sequence[str], compiler: Compiler | None = None) -> tuple[Compilation, RuleGraph]:
    """Policies that must be right, with their graph; raises `CannotRunError` with the findings."""
    compilation = compile_paths(paths, compiler)
    if compilation.graph is None:
        raise CannotRunError(
            "the policies do not compile\n\n" + render("text", compilation.found, compilation.sources)
        )
    return compilation, compilation.graph


def graph_of_files(files: Mapping[str, str], compiler: Compiler | None = None) -> RuleGraph:
    """The graph of policies by their texts; raises `CannotRunError` with the findings."""
    compilation = (compiler or Compiler(find_pack)).compile(Layer(OWN, files))
    if compilation.graph is None:
        raise CannotRunError(
            "the policies do not compile\n\n" + render("text", compilation.found, compilation.sources)
        )
    return compilation.graph


def graph_of(paths: Sequence[str], compiler: Compiler | None = None) -> RuleGraph:
    """The graph of policies that must be right; raises `CannotRunError` with the findings."""
    return compiled(paths, compiler)[1]
