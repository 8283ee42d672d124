"""Label and field selectors as the API takes them: reading the wire forms strictly, writing them, matching.

Both are conjunctions. An empty selector matches everything; a missing LabelSelector object matches
nothing, as in every Kubernetes API. What a label selector means stands in `model/labels.py`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from koordpolicy.kube.errors import Rejected
from koordpolicy.model.labels import LabelRequirement, LabelSelector, Operator, parse_selector, read_selector
from koordpolicy.model.reading import ObjectError

MAX_LENGTH: Final = 65_536
"""The longest selector text that is read."""

_PREFIX: Final = r"(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)"
_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY: Final = re.compile(rf"{_PREFIX}?{_NAME}", re.ASCII)
_VALUE: Final = re.compile(rf"(?:{_NAME})?", re.ASCII)
_FIELD_TEXT: Final = re.compile(r"(?:[^\\]|\\[\\,=])*")
_FIELD_TERM: Final = re.compile(r"(?:[^\\,]|\\.)+")
_FIELD_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z][\w.]*)\s*(==|!=|=)(.*)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\([\\,=])")

_NOTHING: Final = LabelSelector(
    (LabelRequirement("none", Operator.EXISTS), LabelRequirement("none", Operator.DOES_NOT_EXIST))
)


def selector_of(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Read a LabelSelector object (`matchLabels`, `matchExpressions`). None matches nothing, {} everything.

    Raises Rejected for unknown fields and operators, bad keys or values, and operators with the wrong
    number of values.
    """
    if selector is None:
        return _NOTHING
    unknown = set(selector) - {"matchLabels", "matchExpressions"}
    if unknown:
        raise Rejected(
            f"a label selector has no `{min(unknown)}`: it consists of `matchLabels` and `matchExpressions`"
        )
    try:
        return _checked(read_selector(selector))
    except ObjectError as error:
        raise Rejected(str(error)) from error


@lru_cache(maxsize=4096)
def parse_labels(text: str) -> LabelSelector:
    """Read a label selector's wire form: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

    Raises Rejected for what does not follow it.
    """
    if len(text) > MAX_LENGTH:
        raise Rejected(f"the label selector is longer than {MAX_LENGTH} characters")
    if text.rstrip().endswith(","):
        raise Rejected(f"label selector `{text}`: expected a label key after the last `,`")
    try:
        return _checked(parse_selector(text))
    except ValueError as error:
        raise Rejected(f"label selector `{text}`: {error}") from error


def label_text(selector: LabelSelector) -> str:
    """The wire form of a selector; `parse_labels` is the inverse."""
    return ",".join(_requirement_text(one) for one in selector.requirements)


def _requirement_text(one: LabelRequirement) -> str:
    match one.operator:
        case Operator.EXISTS:
            return one.key
        case Operator.DOES_NOT_EXIST:
            return f"!{one.key}"
        case Operator.IN | Operator.NOT_IN:
            word = "in" if one.operator is Operator.IN else "notin"
            return f"{one.key} {word} ({','.join(sorted(one.values))})"


def is_label_key(text: str) -> bool:
    """Whether the text is a qualified name: `name` or `dns.prefix/name`, name of at most 63 characters."""
    prefix, _, name = text.rpartition("/")
    return len(name) <= 63 and len(prefix) <= 253 and _KEY.fullmatch(text) is not None


def is_label_value(text: str) -> bool:
    """Whether the text can be a label's value: empty, or at most 63 characters, alphanumeric at both ends."""
    return len(text) <= 63 and _VALUE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One field must, or with `negated` must not, have this text. A missing field counts as ""."""

    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'!=' if self.negated else '='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements must be met."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether the object's fields are as required."""
        for requirement in self.requirements:
            if (field_text(obj, requirement.field) == requirement.value) is requirement.negated:
                return False
        return True

    def exact(self, field: str) -> str | None:
        """The text this selector demands of a field, None when it leaves that open."""
        for requirement in self.requirements:
            if requirement.field == field and not requirement.negated:
                return requirement.value
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def field_text(obj: Mapping[str, Any], field: str) -> str:
    """The value of a dotted field as field selectors compare it: "" when missing, `true`/`false` for bools."""
    value: Any = obj
    for part in _path(field):
        if not isinstance(value, dict):
            return ""
        value = value.get(part)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@lru_cache(maxsize=256)
def _path(field: str) -> tuple[str, ...]:
    return tuple(field.split("."))


@lru_cache(maxsize=4096)
def parse_fields(text: str) -> FieldSelector:
    r"""Read a field selector's wire form: `spec.nodeName=node-1,status.phase!=Failed`.

    `\,`, `\=` and `\\` stand for the characters themselves. Raises Rejected.
    """
    if len(text) > MAX_LENGTH:
        raise Rejected(f"the field selector is longer than {MAX_LENGTH} characters")
    if not _FIELD_TEXT.fullmatch(text):
        raise Rejected(f"field selector `{text}`: `\\` must be followed by `,`, `=` or `\\`")
    found = []
    for term in _FIELD_TERM.findall(text):
        match = _FIELD_REQUIREMENT.fullmatch(term)
        if match is None:
            raise Rejected(f"`{term}` is not a field requirement: write `field=value` or `field!=value`")
        value = _ESCAPED.sub(r"\1", match[3].strip())
        found.append(FieldRequirement(match[1], value, negated=match[2] == "!="))
    return FieldSelector(tuple(found))


def _checked(selector: LabelSelector) -> LabelSelector:
    """The selector, when its keys and values could stand on an object; else Rejected."""
    for requirement in selector.requirements:
        if not is_label_key(requirement.key):
            raise Rejected(f"`{requirement.key}` is not a label key")
        for value in requirement.values:
            if not is_label_value(value):
                raise Rejected(
                    f"`{value}` is not a value of the label `{requirement.key}`: "
                    "at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"
                )
    return selector
