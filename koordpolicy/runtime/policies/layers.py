"""A revision compiled as it is to decide: its own tree, tested by itself, and above it what a followed ConfigMap says."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from koordpolicy.graph import Compilation, Compiler, Layer
from koordpolicy.graph.state import Progress, silent
from koordpolicy.runtime.policies.packs import OWN, layer_above
from koordpolicy.runtime.policies.revisions import Reason

if TYPE_CHECKING:
    from koordpolicy.graph.testing.run import Chosen


@dataclass(frozen=True, slots=True)
class CompiledLayers:
    """The compilation of all layers, or of as many as are good; without a graph, `reason` says what it failed at.

    `made` is what the compiler had to make, for another one to learn.
    """

    compilation: Compilation
    reason: Reason
    made: Mapping[Hashable, object]


def compile_layers(
    compiler: Compiler,
    files: Mapping[str, str],
    above: Mapping[str, str],
    progress: Progress = silent,
    *,
    checked: bool = False,
    chosen: "Chosen | None" = None,
) -> CompiledLayers:
    """Compile a tree with what lies above it. The tests that are `chosen` are the tree's own, and speak of it alone."""
    own, over = Layer(OWN, files), layer_above(above)
    made: Mapping[Hashable, object] = {}
    if over is None or chosen is not None:
        compilation = compiler.compile(own, progress, checked=checked)
        made = compiler.made
        if compilation.graph is not None and chosen is not None:
            from koordpolicy.graph.testing import with_tests  # noqa: PLC0415  # where revisions are tried elsewhere, tests run there

            progress("its tests ran")
            compilation = with_tests(compilation, chosen)
            if compilation.graph is None:
                return CompiledLayers(compilation, Reason.TESTS_FAILED, made)
        if over is None or compilation.graph is None:
            return CompiledLayers(compilation, Reason.COMPILE_FAILED, made)
    compilation = compiler.compile(own, progress, checked=checked, above=over)
    return CompiledLayers(compilation, Reason.COMPILE_FAILED, {**made, **compiler.made})
