"""The policies that targets decide by."""

from functools import lru_cache

from koordpolicy.graph import RuleGraph, compile_policies
from koordpolicy.graph.layers import Layer
from koordpolicy.runtime.policies.packs import BARE, OWN, find_pack

NOW = 1_767_225_600_000_000_000
"""2026-01-01."""


@lru_cache(maxsize=1)
def graph_of_the_pack() -> RuleGraph:
    """The built-in pack alone."""
    path, text = BARE
    graph = compile_policies(Layer(OWN, {path: text}), find_pack).graph
    assert graph is not None
    return graph
