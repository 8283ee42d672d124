"""The rule graph: all files of one revision compiled into one typed, immutable whole.

    layers of files --passes--> RuleGraph --ask--> Answer with provenance

`compiler.PASSES` is the compiler as an ordered list. Components receive a `RuleGraph` and never
look behind it. Nothing here touches files, the cluster, the clock or randomness.
"""

from koordpolicy.graph.answer import Answer, FactRead, Provenance, RuleRef
from koordpolicy.graph.compiler import Compilation, Compiler, compile_policies
from koordpolicy.graph.graph import About, RuleGraph
from koordpolicy.graph.layers import Layer

__all__ = [
    "About",
    "Answer",
    "Compilation",
    "Compiler",
    "FactRead",
    "Layer",
    "Provenance",
    "RuleGraph",
    "RuleRef",
    "compile_policies",
]
