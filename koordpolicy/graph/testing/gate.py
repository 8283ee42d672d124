"""Tests as part of what a revision has to pass."""

from dataclasses import replace

from koordpolicy.graph.compiler import Compilation
from koordpolicy.graph.testing.causes import with_causes
from koordpolicy.graph.testing.run import Chosen, every_case, run_tests
from koordpolicy.language.kinds.bundle import PolicyBundleSpec


def with_tests(compilation: Compilation, chosen: Chosen = every_case) -> Compilation:
    """The compilation with the findings of its own tests; without a graph when one of them fails.

    Nothing is run where there is no graph, or where the bundle says `tests: {required: false}`.
    """
    if compilation.graph is None or not tests_required(compilation):
        return compilation
    run = run_tests(compilation.graph, compilation.units, chosen)
    found = with_causes(compilation, run)
    graph = None if found.has_errors else compilation.graph
    return replace(compilation, graph=graph, found=found)


def tests_required(compilation: Compilation) -> bool:
    """What the bundle says of its tests; they count unless it says otherwise."""
    own = max((unit.layer for unit in compilation.units), default=0)
    options = [
        unit.spec.tests
        for unit in compilation.units
        if unit.layer == own and isinstance(unit.spec, PolicyBundleSpec)
    ]
    return all(option is None or option.required for option in options)
