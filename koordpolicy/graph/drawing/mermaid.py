"""A picture in the language of Mermaid, which Markdown renderers draw."""

from collections.abc import Mapping
from types import MappingProxyType

from koordpolicy.graph.drawing.picture import Picture, Role

_FRAMES: Mapping[Role, tuple[str, str]] = MappingProxyType(
    {
        Role.FACT: ("([", "])"),
        Role.PARAMETER: ("[/", "/]"),
        Role.VARIABLE: ("(", ")"),
        Role.RULE: ("[", "]"),
        Role.DECISION: ("{{", "}}"),
        Role.COMPONENT: ("[[", "]]"),
    }
)
# Entities keep the characters that mean something to Mermaid or to HTML.
_ENTITIES = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "#": "#35;"}


def write_mermaid(picture: Picture) -> str:
    """A flowchart from left to right."""
    names = {box.id: f"n{number}" for number, box in enumerate(picture.boxes)}
    lines = ["flowchart LR"]
    for box in picture.boxes:
        opening, closing = _FRAMES[box.role]
        label = "<br/>".join(_escaped(line) for line in (box.title, *box.lines))
        lines.append(f'  {names[box.id]}{opening}"{label}"{closing}:::{box.role}')
    lines += [f"  {names[arrow.source]} --> {names[arrow.target]}" for arrow in picture.arrows]
    used = [role for role in Role if any(box.role is role for box in picture.boxes)]
    lines += [f"  classDef {role} text-align:left" for role in used]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return "".join(_ENTITIES.get(letter, letter) for letter in text)
