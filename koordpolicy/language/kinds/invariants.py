"""What must hold whatever a cluster does."""

from typing import Annotated

from pydantic import Field

from koordpolicy.language.kinds.base import Spec
from koordpolicy.language.kinds.exceptions import DECISION
from koordpolicy.language.kinds.fields import Identifier, Text
from koordpolicy.language.kinds.slots import Cel

FACT = Text(
    "a fact",
    r"[a-z][A-Za-z]*(?:\.[a-z][A-Za-z0-9]*)+",
    "a fact is written from its root, such as `node.usage.system.cpu`",
    least=1,
    most=200,
)


class InvariantSpec(Spec):
    """What must hold of decisions on every input there can be."""

    decisions: Annotated[
        dict[Identifier, Annotated[str, DECISION]],
        Field(min_length=1, max_length=20),
    ]
    """Names for decisions, which `require` reads as `decisions.<name>`."""
    where: Annotated[str | None, Cel("On which inputs it must hold; on all without.", roots=frozenset())] = (
        None
    )
    require: Annotated[
        str,
        Cel(
            "What must hold: true or false, over `decisions.<name>` and the facts that these decisions may read. Where a "
            "decision has no answer, nothing is asked. An error in it is a violation, as one in `where` is: guard what may be "
            "missing, as everywhere.",
            roots=frozenset(),
        ),
    ]
    raised: list[Annotated[str, FACT]] = Field(default=[], max_length=20)
    """Facts that are higher, or as high, in a second record that is the same otherwise: `raised.<name>` is what is
    decided there."""
