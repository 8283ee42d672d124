"""From paths on the command line to a compiled bundle."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace

from koordpolicy.cli.bundles import bundles_in, meant, roots_in
from koordpolicy.cli.command import CannotRunError
from koordpolicy.diagnostics import Diagnostic, Diagnostics
from koordpolicy.diagnostics.render import render
from koordpolicy.graph import Compilation, Compiler, Layer, RuleGraph
from koordpolicy.language.foreign import foreign_files
from koordpolicy.language.overlays import patched_by, remedy
from koordpolicy.runtime.policies.packs import BUILT_IN, OWN, find_pack
from koordpolicy.source import Tree, read_tree

__all__ = [
    "BUILT_IN",
    "OWN",
    "apart",
    "compile_paths",
    "compile_tree",
    "compile_trees",
    "compiled",
    "demand_files",
    "find_pack",
    "graph_of",
    "graph_of_files",
    "left_alone",
]


def compile_paths(
    paths: Sequence[str], compiler: Compiler | None = None, *, checked: bool = False
) -> Compilation:
    """Read and compile; what could not be read stands among the findings.

    Raises `CannotRunError` where there is nothing to read at all. No paths stand for the built-in pack alone.
    A `compiler` takes over what it has compiled before. What was `checked` elsewhere is not checked again.
    """
    tree = read_tree(meant(paths))
    if paths:
        demand_files(tree, paths)
    several = roots_in(tree.files)
    if len(several) > 1:
        raise CannotRunError(
            f"there are {len(several)} bundles here; name one of {', '.join(map(_shown, several))}"
        )
    return compile_tree(tree, compiler, checked=checked)


def apart(paths: Sequence[str]) -> list[list[str]]:
    """The paths of each bundle that they mean; policies that are in none of several are left out."""
    whole = meant(paths)
    several = roots_in(read_tree(whole).files)
    return [[root] for root in several] if len(several) > 1 else [whole]


def demand_files(tree: Tree, paths: Sequence[str]) -> None:
    """Raise `CannotRunError` where there was nothing to read at or below the paths."""
    if not tree.touched:
        why = "\n".join(map(told, tree.found))
        raise CannotRunError(
            why or f"there is no policy file (*.yaml, *.yml) below {', '.join(map(_shown, paths))}"
        )


def compile_tree(tree: Tree, compiler: Compiler | None = None, *, checked: bool = False) -> Compilation:
    """Compile what was read; see `compile_paths`. What was `checked` elsewhere is not checked again."""
    compilation = (compiler or Compiler(find_pack)).compile(Layer(OWN, tree.files), checked=checked)
    found = Diagnostics()
    found.extend(tree.found)
    found.extend(compilation.found)
    graph = None if found.has_errors else compilation.graph
    return replace(compilation, graph=graph, found=found)


def compile_trees(tree: Tree, compiler: Compiler | None = None) -> list[Compilation]:
    """Compile each bundle among the files by itself; what could not be read stands with the first."""
    compiler = compiler or Compiler(find_pack)
    bundles = bundles_in(tree.files)
    made: list[Compilation] = []
    for one in bundles:
        others = foreign_files(one.files) if not one.root and len(bundles) > 1 else {}
        if others and len(others) == len(one.files):
            made[-1] = replace(made[-1], foreign={**made[-1].foreign, **others})
            continue
        files = Tree(dict(one.files), Diagnostics() if made else tree.found)
        made.append(compile_tree(files, compiler))
    return made


def left_alone(foreign: Mapping[str, str], width: int) -> str:
    """A sentence on files that are no policies, wrapped; empty where there are none."""
    if not foreign:
        return ""
    count = len(foreign)
    patches_first = sorted(foreign.items(), key=lambda one: patched_by(one[1]) is None)
    shown = [f"{file} ({what})" for file, what in patches_first[:_MOST_FOREIGN]]
    more = [f"{count - len(shown):,} more"] if count > len(shown) else []
    said = f"{count:,} file{' is no policy' if count == 1 else 's are no policies'} and left alone: "
    advice = "; files that the bundle names under `include` are read whatever they say"
    overlay = next((of for of in map(patched_by, foreign.values()) if of is not None), None)
    if overlay is not None:
        advice = "; what an overlay comes to is checked as kustomize makes it:"
    text = textwrap.fill(
        said + ", ".join(shown + more) + advice, width, subsequent_indent="  ", break_on_hyphens=False
    )
    return text if overlay is None else f"{text}\n  {remedy(overlay)}"


_MOST_FOREIGN = 3
"""Files that are named."""


def told(found: Diagnostic) -> str:
    """A finding of a tree in a sentence, for where no report is made: with its place, unless that is in its words."""
    file = found.span.file
    place = "" if f"`{file}`" in found.message else f"{file}: "
    return f"{place}{found.message}; {found.help}" if found.help else f"{place}{found.message}"


def _shown(path: str) -> str:
    return f"`{path}`"


def compiled(
    paths: Sequence[str], compiler: Compiler | None = None, *, checked: bool = False
) -> tuple[Compilation, RuleGraph]:
    """Policies that must be right, with their graph; raises `CannotRunError` with the findings."""
    compilation = compile_paths(paths, compiler, checked=checked)
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


def graph_of(paths: Sequence[str], compiler: Compiler | None = None, *, checked: bool = False) -> RuleGraph:
    """The graph of policies that must be right; raises `CannotRunError` with the findings. See `compile_tree` for `checked`."""
    return compiled(paths, compiler, checked=checked)[1]
