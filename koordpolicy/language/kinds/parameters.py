"""Parameters and constants: a bare value, an expression, or a value with its type said."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.cel.types import DYN, Type
from koordpolicy.language.kinds.fields import Flag, Text
from koordpolicy.language.kinds.forms import any_of, form_of
from koordpolicy.language.kinds.literals import LiteralProblem
from koordpolicy.language.kinds.slots import (
    EXPRESSION,
    Written,
    expression,
    misspelt_cel,
    refusal,
    refusal_below,
    written,
)
from koordpolicy.language.kinds.typenames import TYPE_PATTERN, parse_type

TYPE_NAME = Text(
    "a type",
    TYPE_PATTERN,
    "types are such as `percent`, `cpu`, `bytes`, `duration`, `int`, `double`, `bool`, `string`, `list(string)`",
)
_TEXT = Text("a text", most=10_000)
_FLAG = Flag()
_FORM = form_of(DYN)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a document, or a constant of a library.

    `value` is `None` where only the parameter's existence and type are said. `typed` tells the long
    form `{type: ..., value: ...}`, whose value stands one step deeper in the document. A type that
    is not said is `None`: another document says it, or the literal shows it.
    """

    value: Written | None
    type: Type | None = None
    optional: bool = False
    description: str = ""
    typed: bool = False


@dataclass(frozen=True, slots=True)
class _Declared:
    """The pydantic side of `Parameter`; a constant cannot be optional and needs a value."""

    constant: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        plain = [part for part in _FORM.schemas() if part["type"] != "object"]
        properties: dict[str, Any] = {
            "type": {**TYPE_NAME.__get_pydantic_json_schema__(schema, handler), "description": "Its type."},
            "value": {**any_of([any_of(_FORM.schemas()), EXPRESSION]), "description": "Its value."},
            "description": {"type": "string", "maxLength": _TEXT.most, "description": "What it means."},
        }
        if not self.constant:
            properties["optional"] = {
                "type": "boolean",
                "description": "Whether it may stay without a value.",
            }
        long = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
            **({"required": ["value"]} if self.constant else {"minProperties": 1}),
        }
        return any_of([*plain, EXPRESSION, long])

    def read(self, raw: object) -> Parameter:
        if not isinstance(raw, dict):
            return Parameter(written(_FORM, raw))
        if "cel" in raw:
            return Parameter(expression(_FORM, raw))
        keys = ("type", "value", "description") + (() if self.constant else ("optional",))
        for key in raw:
            if key not in keys:
                close = nearest(key, keys) or ("cel" if misspelt_cel(raw) else None)
                shapes = "a value, `{cel: ...}`, or a mapping with " + ", ".join(
                    f"`{known}`" for known in keys
                )
                help = f"did you mean `{close}`?" if close else f"write {shapes}"
                if not close and not set(raw) & set(keys):
                    help = f"where the value itself is a mapping, write `{{value: {{{key}: ...}}}}`"
                raise refusal(LiteralProblem(f"unknown key `{key}`", help, path=(key,)), "KP104")
        if not raw or (self.constant and "value" not in raw):
            raise refusal(
                LiteralProblem("the key `value` is missing", "add it, or write the value alone"), "KP105"
            )
        value = _at("value", lambda given: written(_FORM, given), raw["value"]) if "value" in raw else None
        type_name = _at("type", TYPE_NAME.read, raw["type"]) if "type" in raw else None
        description = _at("description", _TEXT.read, raw["description"]) if "description" in raw else ""
        optional = _at("optional", _FLAG.read, raw["optional"]) if "optional" in raw else False
        return Parameter(
            value, parse_type(type_name) if type_name else None, optional, description, typed=True
        )


def _at(step: str, read: Any, raw: object) -> Any:
    """Read one key of the long form; a refusal names the key."""
    try:
        return read(raw)
    except PydanticCustomError as fault:
        raise refusal_below(step, fault) from None


ParameterValue = Annotated[Parameter, _Declared()]
Constant = Annotated[Parameter, _Declared(constant=True)]
