"""The rule graph as a picture: facts → variables and parameters → rules → decisions → components.

`build` makes a `Picture` of boxes and arrows, in detail for a few decisions and by documents for many. `dot`,
`mermaid` and `svg` write it down; `layout` places the boxes of an SVG. All of it is pure, and the same graph
always gives the same picture.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from koordpolicy.graph.drawing.build import Detail, picture_of
from koordpolicy.graph.drawing.dot import write_dot
from koordpolicy.graph.drawing.mermaid import write_mermaid
from koordpolicy.graph.drawing.picture import Arrow, Picture, PictureBox, Role
from koordpolicy.graph.drawing.svg import place_picture, write_svg

FORMATS: Mapping[str, Callable[[Picture], str]] = MappingProxyType(
    {"dot": write_dot, "mermaid": write_mermaid, "svg": write_svg}
)
"""How pictures are written down."""

__all__ = ["FORMATS", "Arrow", "Detail", "Picture", "PictureBox", "Role", "picture_of", "place_picture"]
