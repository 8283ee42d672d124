"""The plain fields of models: texts with a form, whole numbers, names, free mappings.

Each is one object that checks a value and knows its JSON Schema, so the two say the same. Refusals
carry message, help and code to `validate` as they are.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from koordpolicy.language.kinds.forms import exactly
from koordpolicy.language.kinds.literals import LiteralProblem, described, same_word, shortened
from koordpolicy.language.kinds.meanings import meanings
from koordpolicy.language.kinds.slots import refusal


def yaml_name(name: str) -> str:
    """The key of a field: camel case, with `CPUs` in capitals where it is not the first word."""
    return re.sub(r"(?<=[a-z])Cpu(?=s?\Z|s?[A-Z])", "CPU", to_camel(name.rstrip("_")))


class PolicyModel(BaseModel):
    """Base of everything in a document: strict, immutable, and closed to unknown keys."""

    # What checks a model is built when the first document of its kind comes: many kinds are in no bundle.
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, alias_generator=yaml_name, defer_build=True
    )

    # mypy's plugin warns here of aliases that code might have to write; models are only read from documents.
    @classmethod  # type: ignore[pydantic-alias]
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        result = handler(schema)
        properties = handler.resolve_ref_schema(result).get("properties", {})
        for name, meaning in meanings(cls).items():
            if (field := cls.model_fields.get(name)) is not None:
                properties[field.alias or name]["description"] = meaning
        return result


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _NotNull:
    """An optional field: it may be absent, but `null` is no way to write that."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        inner = [argument for argument in get_args(source) if argument is not type(None)]
        return handler.generate_schema(inner[0])


Given = Annotated[_T | None, _NotNull()]
"""`Given[X]` is an X that may be left out (then `None`), but not written as null."""


@dataclass(frozen=True, slots=True)
class Text:
    """A string with a form. `what` names it in messages, `code` is the finding's where it is wrong."""

    what: str
    pattern: str | None = None
    help: str | None = None
    code: str = "KP107"
    least: int = 0
    most: int = 1000
    choices: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        if self.choices:
            return {"type": "string", "enum": list(self.choices)}
        result: dict[str, Any] = {"type": "string", "maxLength": self.most}
        if self.least:
            result["minLength"] = self.least
        if self.pattern:
            result["pattern"] = exactly(self.pattern)
        return result

    def read(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise refusal(
                LiteralProblem(
                    f"expected {self.what}, found {described(raw)}",
                    self.advice,
                    wrong_type=True,
                    quote=isinstance(raw, int | float) and not self.choices,
                )
            )
        if self.choices:
            if raw in self.choices:
                return raw
            meant = same_word(raw, self.choices)
            problem = LiteralProblem(
                f"`{shortened(raw)}` is not {self.what}",
                self.advice,
                replacement=meant,
                safe=meant is not None,
            )
            raise refusal(problem, self.code)
        if not self.least <= len(raw) <= self.most:
            size = (
                "is empty"
                if not raw
                else f"has {len(raw)} characters, {self.least} to {self.most} are permitted"
            )
            raise refusal(LiteralProblem(f"{self.what} {size}", self.help), self.code)
        if self.pattern and not re.search(exactly(self.pattern), raw):
            raise refusal(LiteralProblem(f"`{shortened(raw)}` is not {self.what}", self.advice), self.code)
        return raw

    @property
    def advice(self) -> str | None:
        """What to write instead."""
        return "write " + " or ".join(f"`{choice}`" for choice in self.choices) if self.choices else self.help


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number between two bounds."""

    minimum: int
    maximum: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}

    def read(self, raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            problem = LiteralProblem(
                f"expected a whole number, found {described(raw)}", self.advice, wrong_type=True
            )
            raise refusal(problem)
        if raw != int(raw):
            raise refusal(LiteralProblem(f"`{raw}` is not a whole number", self.advice))
        if not self.minimum <= raw <= self.maximum:
            raise refusal(LiteralProblem(f"`{raw}` is not between {self.minimum} and {self.maximum}"))
        return int(raw)

    @property
    def advice(self) -> str:
        """What to write instead."""
        return f"write a whole number from {self.minimum:,} to {self.maximum:,}"


@dataclass(frozen=True, slots=True)
class Flag:
    """`true` or `false`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "boolean"}

    def read(self, raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        raise refusal(
            LiteralProblem(
                f"expected `true` or `false`, found {described(raw)}",
                "write `true` or `false`",
                wrong_type=True,
            )
        )


@dataclass(frozen=True, slots=True)
class FreeObject:
    """A mapping of anything, carried on as it is."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "object"}

    def read(self, raw: object) -> dict[str, Any]:
        if not isinstance(raw, dict):
            raise refusal(LiteralProblem(f"expected a mapping, found {described(raw)}", wrong_type=True))
        return raw


_DNS = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_WORD = "[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"

Identifier = Annotated[
    str,
    Text(
        "a name",
        "[A-Za-z_][A-Za-z0-9_]*",
        "a name has letters, digits and `_`, and begins with no digit",
        "KP108",
        least=1,
        most=63,
    ),
]
"""A name that expressions use."""

DNSName = Annotated[
    str,
    Text(
        "a name",
        rf"{_DNS}(?:\.{_DNS})*",
        "a name has lower-case letters, digits, `-` and `.`, as Kubernetes asks of objects",
        "KP108",
        least=1,
        most=253,
    ),
]
"""A name of an object."""

ItemName = Annotated[
    str,
    Text(
        "a name",
        _WORD,
        "a name has letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
        "KP108",
        least=1,
        most=63,
    ),
]
"""A name of an element of a list, of a class or of a band."""

LabelKey = Annotated[
    str,
    Text(
        "a label key",
        rf"(?:{_DNS}(?:\.{_DNS})*/)?{_WORD}",
        "a key has an optional prefix with `/` and a name of letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
        least=1,
        most=317,
    ),
]
LabelValue = Annotated[
    str,
    Text(
        "a label value",
        f"(?:{_WORD})?",
        "a value has letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
        most=63,
    ),
]
AnyText = Annotated[str, Text("a text", most=10_000)]
Glob = Annotated[str, Text("a path pattern", least=1, most=500)]
