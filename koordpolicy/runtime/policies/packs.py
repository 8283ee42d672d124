"""The packs that ship with the product, as layers for the compiler."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from koordpolicy import resources
from koordpolicy.graph import Compiler, Layer, RuleGraph
from koordpolicy.model.slo_config import CONFIG_MAP
from koordpolicy.source import read_tree

OWN: Final = "bundle"
"""The name of the layer that the user's files make."""

BUILT_IN: Final = "koordinator"
"""The pack that ships with the product."""

BARE: Final = (
    "koordpolicy.yaml",
    (
        "apiVersion: koordpolicy.io/v1alpha1\n"
        "kind: PolicyBundle\n"
        "metadata:\n"
        "  name: built-in\n"
        "spec:\n"
        f"  extends: [{BUILT_IN}]\n"
    ),
)
"""Path and text of the bundle that adds nothing to the pack."""


def layer_above(files: Mapping[str, str]) -> Layer | None:
    """What a followed ConfigMap says, as the layer above the user's files; None where it says nothing."""
    return Layer(CONFIG_MAP, files) if files else None


def bare_graph(compiler: Compiler) -> RuleGraph:
    """The graph of the built-in pack alone."""
    graph = compiler.compile(Layer(OWN, dict([BARE]))).graph
    assert graph is not None  # the pack ships with the product
    return graph


def find_pack(name: str) -> Layer | None:
    """The built-in pack of that name, None when there is none."""
    if name != BUILT_IN:
        return None
    root = resources.policies()
    files = read_tree([root]).files
    shown = {f"{name}/{Path(file).relative_to(root).as_posix()}": text for file, text in files.items()}
    return Layer(name, shown)
