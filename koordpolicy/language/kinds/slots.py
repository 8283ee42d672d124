"""Slots: the places of a kind where a value may be a literal or an expression."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.cel.permitted import Permitted
from koordpolicy.language.cel.types import BOOL, Type
from koordpolicy.language.facts.table import Components
from koordpolicy.language.kinds.forms import LiteralForm, any_of, form_of
from koordpolicy.language.kinds.literals import LiteralProblem, described, form_problem, range_words

LONGEST_EXPRESSION = 10_000
"""How many characters an expression may have. The checker's own limit may be lower."""

_MOST_KEYS = 100


@dataclass(frozen=True, slots=True)
class Expression:
    """CEL text as written under `cel:`. Its place in the document is the value's path plus `cel`."""

    text: str


Literal: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any]
Written: TypeAlias = Literal | Expression
Value: TypeAlias = Written | tuple[Written, ...] | None
"""What a slot's field holds: `None` where the document says nothing."""


class Combine(StrEnum):
    """How several rules of one decision make one answer (the design's table of combinations)."""

    OVERRIDE = "override"
    LAYER = "layer"
    ALL = "all"
    WEIGHTED = "weighted"
    ORDER = "order"
    TIGHTEST = "tightest"


@dataclass(frozen=True, slots=True)
class Cel:
    """Marks a field that is CEL text as it stands, such as `match.condition`.

    `roots` are the names it may use beyond `variables`, `parameters` and `constants`; `None` means
    those of the kind. `type` is what it must give, `None` for anything.
    """

    meaning: str
    type: Type | None = BOOL
    roots: frozenset[str] | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(expression_text)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**EXPRESSION_TEXT, "description": self.meaning}


@dataclass(frozen=True, slots=True)
class Slot:
    """Marks a field whose value is a decision: a literal of `type` or `{cel: ...}`.

    `also` are further types that an expression may give. `choices` are the permitted texts of a
    string, `minimum` and `maximum` bound plain numbers, `pattern` a string, or each of a map's, which `words` describe. With `many` the field
    is a list of such values that make one decision together. `names` is a pattern for the names of a map, which `named` describes. `roots` are the names an expression
    may use; `None` means those of the kind. `unknown` says what a text means that is none of the choices and that only
    run time knows; where it is empty such a value is refused. `components` are who asks it, where not all do that ask the kind. `default` is what holds where no rule says anything, as
    it would be written; `None` for none.
    """

    type: Type
    meaning: str
    combine: Combine = Combine.OVERRIDE
    roots: frozenset[str] | None = None
    default: Any = None
    also: tuple[Type, ...] = ()
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    pattern: str | None = None
    words: str = ""
    names: str = ""
    named: str = ""
    many: bool = False
    unknown: str = ""
    components: Components | None = None

    @property
    def form(self) -> LiteralForm:
        """How a literal is written here."""
        form = form_of(self.type)
        if self.choices:
            words = " or ".join(f"`{choice}`" for choice in self.choices)
            if form.element:
                return LiteralForm(f"a list of {words}", element=LiteralForm(words, choices=self.choices))
            return LiteralForm(words, choices=self.choices)
        if self.pattern:
            inner = form.entry or form
            one = replace(inner, pattern=self.pattern, words=self.words or inner.words)
            return one if form.entry is None else LiteralForm(f"a mapping of names to {one.words}", entry=one)
        if self.minimum is not None or self.maximum is not None:
            least = form.minimum if self.minimum is None else self.minimum
            most = form.maximum if self.maximum is None else self.maximum
            return replace(form, minimum=least, maximum=most)
        return replace(form, names=self.names, named=self.named) if self.names else form

    @property
    def permitted(self) -> Permitted | None:
        """What values are held to beyond their type, whether written down or computed; None for nothing."""
        form = self.form
        words = (form.element or form.entry or form).words
        if self.choices:
            return Permitted(words, choices=self.choices)
        if self.pattern:
            return Permitted(words, pattern=self.pattern)
        if self.minimum is None and self.maximum is None:
            return None
        low = -inf if self.minimum is None else self.minimum
        high = inf if self.maximum is None else self.maximum
        return Permitted(f"{words}, {range_words(form)}", low=low, high=high)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        form = self.form
        one = core_schema.no_info_plain_validator_function(lambda raw: written(form, raw))
        if not self.many:
            return one
        several = core_schema.list_schema(one, strict=True, max_length=_MOST_KEYS)
        return core_schema.no_info_after_validator_function(tuple, several)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        one = any_of([any_of(self.form.schemas()), EXPRESSION])
        if self.many:
            one = {"type": "array", "items": one, "maxItems": _MOST_KEYS}
        result = {**one, "description": self.meaning}
        return result if self.default is None else {**result, "default": self.default}


EXPRESSION_TEXT: Mapping[str, Any] = MappingProxyType(
    {"type": "string", "pattern": "\\S", "maxLength": LONGEST_EXPRESSION}
)
EXPRESSION: dict[str, Any] = {
    "type": "object",
    "properties": {"cel": {**EXPRESSION_TEXT, "description": "An expression that gives the value."}},
    "required": ["cel"],
    "additionalProperties": False,
}


def written(form: LiteralForm, raw: object) -> Written:
    """The value of a slot as written. Raises `PydanticCustomError` of type `policy`."""
    if isinstance(raw, dict) and (form.entry is None or "cel" in raw or misspelt_cel(raw, surely=True)):
        return expression(form, raw)
    problem = form_problem(form, raw)
    if problem:
        raise refusal(problem)
    return raw  # type: ignore[return-value]


def expression(form: LiteralForm, raw: dict[str, Any]) -> Expression:
    """The `{cel: ...}` that stands for a value of `form`. Raises `PydanticCustomError`."""
    if "cel" not in raw:
        slip = misspelt_cel(raw)
        if slip is not None:
            raise refusal(
                LiteralProblem(
                    f"unknown key `{slip}`",
                    "did you mean `cel`? It stands before an expression",
                    path=(slip,),
                    replacement="cel",
                ),
                code="KP104",
            )
        problem = form_problem(form, raw)
        assert problem is not None
        raise refusal(problem)
    for key in raw:
        if key != "cel":
            raise refusal(
                LiteralProblem(
                    f"unknown key `{key}` beside `cel`",
                    "quote the expression: within braces a `,` ends it"
                    if _cut_off(raw["cel"])
                    else "an expression has the key `cel` alone",
                    path=(key,),
                ),
                code="KP104",
            )
    if isinstance(raw["cel"], bool | int | float) and form_problem(form, raw["cel"]) is None:
        value = json.dumps(raw["cel"])
        problem = LiteralProblem(
            f"expected an expression, found {described(raw['cel'])}",
            f"write the value itself: `{value}`",
            wrong_type=True,
            replacement=value,
            safe=True,
        )
        raise refusal(problem)
    try:
        return Expression(expression_text(raw["cel"]))
    except PydanticCustomError as fault:
        raise refusal_below("cel", fault) from None


_FOR_CEL: Final = frozenset(("expression", "expr", "formula"))
"""What other languages call it."""


def misspelt_cel(raw: dict[str, Any], *, surely: bool = False) -> str | None:
    """The only key of a mapping where it was meant for `cel`; `surely` where nothing else can be meant by it."""
    if len(raw) != 1:
        return None
    (key,) = raw
    if key.casefold() == "cel":
        return key
    return key if not surely and (key in _FOR_CEL or nearest(key, ("cel",))) else None


def _cut_off(text: object) -> bool:
    """Whether a text has more opening parentheses or brackets than closing ones."""
    return isinstance(text, str) and (text.count("("), text.count("[")) > (text.count(")"), text.count("]"))


def expression_text(raw: object) -> str:
    """CEL text as it stands. Raises `PydanticCustomError` of type `policy`."""
    if not isinstance(raw, str):
        hint = "write the expression as a text"
        if isinstance(raw, dict) and "cel" in raw:
            hint = "write the expression itself here, without `cel:`"
        elif isinstance(raw, dict):
            hint = "quote an expression that begins with `{`"
        elif isinstance(raw, list):
            hint = "quote an expression that begins with `[`"
        raise refusal(
            LiteralProblem(
                f"expected an expression, found {described(raw)}",
                hint,
                wrong_type=True,
                quote=isinstance(raw, int | float),
            )
        )
    if not raw.strip():
        raise refusal(LiteralProblem("the expression is empty"))
    if len(raw) > LONGEST_EXPRESSION:
        raise refusal(
            LiteralProblem(
                f"the expression has {len(raw):,} characters, more than {LONGEST_EXPRESSION:,}",
                "move parts of it into variables or library functions",
            ),
            code="KP211",
        )
    return raw


def refusal(problem: LiteralProblem, code: str | None = None) -> PydanticCustomError:
    """A literal's problem as pydantic carries it to `validate`."""
    others = [_told(other, code) for other in problem.others]
    return PydanticCustomError("policy", "{message}", {**_told(problem, code), "others": others})


def refusal_below(step: str | int, fault: PydanticCustomError) -> PydanticCustomError:
    """The same refusal as seen from one level above."""
    context = dict(fault.context or {})
    others = [{**other, "path": (step, *other["path"])} for other in context["others"]]
    told = {**context, "path": (step, *context["path"]), "others": others}
    return PydanticCustomError("policy", "{message}", told)


def _told(problem: LiteralProblem, code: str | None) -> dict[str, Any]:
    return {
        "message": problem.message,
        "help": problem.help,
        "code": code or ("KP106" if problem.wrong_type else "KP107"),
        "path": problem.path,
        "replacement": problem.replacement,
        "safe": problem.safe,
        "quote": problem.quote,
    }
