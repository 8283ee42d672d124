"""Label selectors of Kubernetes, from their JSON form and from text, as values that match labels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from koordpolicy.model.reading import Json, ObjectError, objects, sequence, text, texts

_MOST_REQUIREMENTS: Final = 1000


class Operator(StrEnum):
    """How a requirement compares. Equality is `In` with one value."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet this requirement. `NotIn` holds where the label is absent."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; the empty selector matches everything."""

    requirements: tuple[LabelRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        for requirement in self.requirements:  # noqa: SIM110  # a generator takes as long again
            if not requirement.matches(labels):
                return False
        return True


def read_selector(selector: Json, at: str = "selector") -> LabelSelector:
    """A selector from its JSON form: `matchLabels` and `matchExpressions`. Raises ObjectError."""
    found = [
        LabelRequirement(key, Operator.IN, frozenset({value}))
        for key, value in sorted(texts(selector, "matchLabels", at).items())
    ]
    for index, expression in enumerate(objects(selector, "matchExpressions", at)):
        place = f"{at}.matchExpressions[{index}]"
        found.append(_read_expression(expression, place))
    if len(found) > _MOST_REQUIREMENTS:
        raise ObjectError(f"{at}: more than {_MOST_REQUIREMENTS} requirements")
    return LabelSelector(tuple(found))


def selector_json(selector: LabelSelector) -> dict[str, object]:
    """The JSON form of a selector, the same for the same one; `read_selector` is the inverse."""
    return {
        "matchExpressions": [
            {"key": one.key, "operator": str(one.operator)}
            | ({"values": sorted(one.values)} if one.values else {})
            for one in selector.requirements
        ]
    }


def _read_expression(expression: Json, place: str) -> LabelRequirement:
    word = text(expression, "operator", place)
    if word not in Operator.__members__.values():
        raise ObjectError(f"{place}.operator: `{word}` is not one of {', '.join(Operator)}")
    values = sequence(expression, "values", place)
    if not all(isinstance(value, str) for value in values):
        raise ObjectError(f"{place}.values: expected text only")
    operator = Operator(word)
    if (operator in (Operator.IN, Operator.NOT_IN)) != bool(values):
        needed = "needs values" if not values else "takes no values"
        raise ObjectError(f"{place}: {operator} {needed}")
    return LabelRequirement(text(expression, "key", place), operator, frozenset(map(str, values)))


_KEY = r"[A-Za-z0-9./_-]+"
_TERM: Final = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<absent_key>{_KEY})"
    rf"|(?P<key>{_KEY})\s*(?:(?P<equal>==?|!=)\s*(?P<value>[A-Za-z0-9._-]*)"
    rf"|\s(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)",
    re.ASCII,
)


def parse_selector(source: str) -> LabelSelector:
    """A selector from text, as in a list request: `a=b,c!=d,e in (f,g),!h`. Raises ValueError."""
    found: list[LabelRequirement] = []
    position = 0
    while position < len(source.rstrip()):
        match = _TERM.match(source, position)
        if match is None or match.end() == position:
            raise ValueError(
                f"`{source[position : position + 40]}` is not a label requirement such as `app=web`"
            )
        found.append(_term(match))
        position = match.end()
        if len(found) > _MOST_REQUIREMENTS:
            raise ValueError(f"more than {_MOST_REQUIREMENTS} label requirements")
    return LabelSelector(tuple(found))


def _term(match: re.Match[str]) -> LabelRequirement:
    if match["absent"]:
        return LabelRequirement(match["absent_key"], Operator.DOES_NOT_EXIST)
    if match["equal"]:
        operator = Operator.NOT_IN if match["equal"] == "!=" else Operator.IN
        return LabelRequirement(match["key"], operator, frozenset({match["value"]}))
    if match["set"]:
        values = frozenset(value.strip() for value in match["values"].split(","))
        return LabelRequirement(
            match["key"], Operator.IN if match["set"] == "in" else Operator.NOT_IN, values
        )
    return LabelRequirement(match["key"], Operator.EXISTS)
