"""A narrow, owned override of decisions, with a reason and an end date."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from koordpolicy.language.cel.types import DYN
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds.base import Match, Precedence, Spec
from koordpolicy.language.kinds.fields import Given, Text
from koordpolicy.language.kinds.forms import MOMENT, any_of, form_of
from koordpolicy.language.kinds.literals import LiteralProblem
from koordpolicy.language.kinds.slots import EXPRESSION, Expression, Written, refusal, refusal_below, written

_SPOKEN = r"[\s\S]*\S[\s\S]*"
_MOMENT = Text(
    "a date or a time",
    MOMENT,
    "write a date such as `2026-07-01`, or a time such as `2026-07-01T18:00:00Z`",
    most=40,
)
DECISION = Text(
    "the name of a decision",
    r"[A-Z][A-Za-z]*(?:/[^\s/.\[\]]+(?:\.[^\s/.\[\]]+)*)?\.[A-Za-z][^\s]*",
    "a decision is written `Kind/subject.field`, such as `Overcommit/batch.parameters.cpuReclaim`",
    least=1,
    most=500,
)


@dataclass(frozen=True, slots=True)
class Override:
    """What an exception puts in place of a decision's value.

    `value` is a literal as written, an `Expression`, or a tuple of these for decisions that are lists.
    """

    value: Written | tuple[Written, ...]

    def expressions(self, path: Path) -> Iterator[tuple[Path, str]]:
        """Path and text of each expression; `path` leads to the value."""
        if isinstance(self.value, Expression):
            yield (*path, "cel"), self.value.text
        elif isinstance(self.value, tuple):
            for at, part in enumerate(self.value):
                if isinstance(part, Expression):
                    yield (*path, at, "cel"), part.text


@dataclass(frozen=True, slots=True)
class _Overriding:
    """The pydantic side of `Override`: any literal, an expression, or a list with expressions in it."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        several = {"type": "array", "items": EXPRESSION, "minItems": 1, "maxItems": _MOST_PARTS}
        return any_of([*_FORM.schemas(), EXPRESSION, several])

    def read(self, raw: object) -> Override:
        if isinstance(raw, list) and raw and all(isinstance(part, dict) and "cel" in part for part in raw):
            if len(raw) > _MOST_PARTS:
                raise refusal(LiteralProblem(f"the list has {len(raw)} expressions, more than {_MOST_PARTS}"))
            return Override(tuple(_part(at, part) for at, part in enumerate(raw)))
        return Override(written(_FORM, raw))


def _part(at: int, raw: object) -> Written:
    """One expression of a list; a refusal names its place in the list."""
    try:
        return written(_FORM, raw)
    except PydanticCustomError as fault:
        raise refusal_below(at, fault) from None


_FORM = form_of(DYN)
_MOST_PARTS = 100


class PolicyExceptionSpec(Spec):
    """An override of a few decisions for a few objects, that somebody answers for and that ends by itself."""

    owner: Annotated[str, Text("an owner", _SPOKEN, "name a person or a team", least=1, most=200)]
    """Who answers for it: a person or a team, and how to reach them."""
    reason: Annotated[str, Text("a reason", _SPOKEN, "say why it is needed", least=1, most=2000)]
    """Why it is needed, for whoever finds it later."""
    from_: Given[Annotated[str, _MOMENT]] = None
    """When it begins; at once without. A date stands for its first moment, UTC."""
    expires: Annotated[str, _MOMENT]
    """When it ends by itself. A date is the last day on which it holds, UTC."""
    match: Match
    """What it applies to. It must narrow: an exception for everything is a policy."""
    precedence: Precedence = 0
    """Which exception wins where several override the same decision: the higher one."""
    overrides: Annotated[
        dict[Annotated[str, DECISION], Annotated[Override, _Overriding()]],
        Field(min_length=1, max_length=100),
    ]
    """Value by decision: `Overcommit/batch.parameters.cpuReclaim: 40%`; a literal or `{cel: ...}`."""
