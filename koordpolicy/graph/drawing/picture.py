"""What is drawn, before anybody knows where it stands."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a box stands for, from left to right."""

    FACT = "fact"
    PARAMETER = "parameter"
    VARIABLE = "variable"
    RULE = "rule"
    DECISION = "decision"
    COMPONENT = "component"


@dataclass(frozen=True, slots=True)
class PictureBox:
    """`title` is the name, `lines` what is said of it, `hint` all that has no room."""

    id: str
    role: Role
    title: str
    lines: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """From what is read to what reads it, by the ids of boxes."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and arrows without circles. Every arrow joins two boxes that are there, and no two are equal."""

    title: str
    boxes: tuple[PictureBox, ...]
    arrows: tuple[Arrow, ...]
