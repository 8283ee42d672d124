"""The packs that ship with the product, as layers for the compiler."""

from pathlib import Path
from typing import Final

from koordpolicy import resources
from koordpolicy.graph import Layer
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


def find_pack(name: str) -> Layer | None:
    """The built-in pack of that name, None when there is none."""
    if name != BUILT_IN:
        return None
    root = resources.policies()
    files = read_tree([root]).files
    shown = {f"{name}/{Path(file).relative_to(root).as_posix()}": text for file, text in files.items()}
    return Layer(name, shown)
