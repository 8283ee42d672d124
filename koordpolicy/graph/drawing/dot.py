"""A picture in the language of Graphviz."""

from collections.abc import Mapping
from types import MappingProxyType

from koordpolicy.graph.drawing.picture import Picture, PictureBox, Role

_SHAPES: Mapping[Role, str] = MappingProxyType(
    {
        Role.FACT: "ellipse",
        Role.PARAMETER: "note",
        Role.VARIABLE: "box",
        Role.RULE: "box",
        Role.DECISION: "box",
        Role.COMPONENT: "component",
    }
)
_STYLES: Mapping[Role, str] = MappingProxyType(
    {Role.VARIABLE: "rounded,dashed", Role.RULE: "rounded", Role.DECISION: "rounded,bold"}
)


def write_dot(picture: Picture) -> str:
    """A directed graph from left to right."""
    lines = [
        f"digraph {_quoted(picture.title)} {{",
        "  rankdir=LR;",
        '  node [fontname="monospace", fontsize=10];',
        "  edge [arrowsize=0.7];",
    ]
    lines += [f"  {_quoted(box.id)} [{_attributes(box)}];" for box in picture.boxes]
    lines += [f"  {_quoted(arrow.source)} -> {_quoted(arrow.target)};" for arrow in picture.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def _attributes(box: PictureBox) -> str:
    # `\l` ends a line and sets it to the left.
    label = (
        "".join(_escaped(line) + "\\l" for line in (box.title, *box.lines))
        if box.lines
        else _escaped(box.title)
    )
    parts = [f'label="{label}"', f"shape={_SHAPES[box.role]}"]
    if box.role in _STYLES:
        parts.append(f'style="{_STYLES[box.role]}"')
    if box.hint:
        parts.append(f"tooltip={_quoted(box.hint)}")
    return ", ".join(parts)


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace("\n", "\\n") + '"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
