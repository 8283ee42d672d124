"""From the typed form to CEL that an API server compiles, in Kubernetes' libraries."""

from collections.abc import Callable, Mapping
from typing import Final, TypeGuard

from koordpolicy.graph.conditions import can_fail, forgiving
from koordpolicy.graph.native.amounts import cpu_text, memory_text
from koordpolicy.graph.native.fields import ELEMENTS
from koordpolicy.graph.native.functions import (
    FUNCTIONS,
    LEVELS,
    METHODS,
    OPERATORS,
    SIZES,
    UNITS,
    missing,
)
from koordpolicy.graph.native.objects import (
    CONTAINER,
    PLAIN,
    NativeObjects,
    container_states,
    named_amounts,
)
from koordpolicy.graph.native.reasons import NotNative
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.escapes import quote_string
from koordpolicy.language.cel.ir_walk import inline_binds
from koordpolicy.language.cel.types import Unit
from koordpolicy.language.cel.values import INT_MIN

_LONGEST: Final = 20_000
"""Characters of one expression."""
_CONDITIONAL, _UNARY, _MEMBER = 0, 6, 7
_TEXTS: Final = {Unit.CPU: cpu_text, Unit.BYTES: memory_text}
"""How amounts are written for people, by their unit."""
_MACROS: Final = frozenset(("all", "exists", "exists_one", "map", "filter"))

_Text = tuple[str, int]
"""An expression with how tightly its outermost operator binds."""


def written(node: ir.Node, objects: NativeObjects) -> str:
    """The expression as text. Raises NotNative."""
    try:
        text, _ = _Writer(objects).spelt(inline_binds(node))
    except RecursionError:
        raise NotNative("it is nested too deep") from None
    return text


class _Writer:
    """One expression."""

    def __init__(self, objects: NativeObjects) -> None:
        self._objects = objects
        self._names: dict[str, str] = {}
        self._forms: Mapping[type[ir.Node], Callable[..., _Text]] = {
            ir.Const: lambda node: _constant(node.value),
            ir.Var: self._variable,
            ir.Field: self._field,
            ir.HasField: self._has_field,
            ir.OptField: self._opt_field,
            ir.Select: lambda node: self._key(
                node.operand, quote_string(node.field), optional=node.optional, test=node.test
            ),
            ir.Index: self._index,
            ir.Call: self._call,
            ir.And: lambda node: self._joined(node.args, "_&&_", " && "),
            ir.Or: lambda node: self._joined(node.args, "_||_", " || "),
            ir.Cond: self._choice,
            ir.Holds: self._holds,
            ir.OrElse: lambda node: (
                f"{self._at(node.operand, _MEMBER)}.{'orValue' if node.unwrap else 'or'}({self._at(node.other)})",
                _MEMBER,
            ),
            ir.MakeList: self._list,
            ir.Comprehension: self._macro,
        }

    def spelt(self, node: ir.Node) -> _Text:
        """The text of a node."""
        form = self._forms.get(type(node))
        if form is None:
            raise NotNative(
                "what it makes of values is checked while it runs"
                if isinstance(node, ir.Cast)
                else f"an API server's CEL has no equal of what it says ({type(node).__name__})"
            )
        text, level = form(node)
        if len(text) > _LONGEST:
            raise NotNative(f"it is longer than {_LONGEST:,} characters")
        return text, level

    def _at(self, node: ir.Node, least: int = _CONDITIONAL) -> str:
        text, level = self.spelt(node)
        return text if level >= least else f"({text})"

    # --- what is read -----------------------------------------------------------------------------

    def _variable(self, node: ir.Var) -> _Text:
        if node.local:
            return self._name(node.name), _MEMBER
        if node.name not in PLAIN:
            raise NotNative(f"it reads `{node.name}`, which an API server does not tell its policies")
        return PLAIN[node.name], _MEMBER

    def _name(self, local: str) -> str:
        return self._names.setdefault(local, f"v{len(self._names)}")

    def _field(self, node: ir.Field) -> _Text:
        if named_amounts(node.path) is not None:
            raise NotNative(f"it reads all of `{node.path}`, not one resource by its name")
        if _is_root(node.base):
            return self._objects.fact(node.base.name, node.path), _MEMBER
        return self._objects.element_fact(*self._element(node.base), node.path), _MEMBER

    def _element(self, node: ir.Node) -> tuple[str, str]:
        """The record and the text of an element of a list, such as a container, that an expression has at hand."""
        record = node.type.record
        if record is None or record not in ELEMENTS or not isinstance(node, (ir.Var, ir.Index)):
            raise NotNative(f"it reads a `{node.type}`, which the object does not say")
        return record, self._at(node, _MEMBER)

    def _has_field(self, node: ir.HasField) -> _Text:
        if _is_root(node.base):
            there = [self._objects.present(node.base.name, path) for path in node.paths]
        else:
            element = self._element(node.base)
            there = [self._objects.element_present(*element, path) for path in node.paths]
        return " || ".join(there), 1

    def _opt_field(self, node: ir.OptField) -> _Text:
        if _is_root(node.base):
            there = self._objects.present(node.base.name, node.path)
            fact = self._objects.fact(node.base.name, node.path)
        elif node.base.type.record in ELEMENTS:
            element = self._element(node.base)
            there = self._objects.element_present(*element, node.path)
            fact = self._objects.element_fact(*element, node.path)
        else:
            raise NotNative("it reads facts of what may be absent")
        fact = f"optional.of({fact})"
        return (fact, _MEMBER) if there == "true" else (f"{there} ? {fact} : optional.none()", _CONDITIONAL)

    def _key(self, operand: ir.Node, key: str, *, optional: bool, test: bool) -> _Text:
        if operand.type.name != "map":
            raise NotNative("it looks into values whose type only run time can tell")
        amounts = self._amounts(operand, key)
        if amounts is None:
            place = self._at(operand, _MEMBER)
            return (f"{key} in {place}", 3) if test else (f"{place}[{'?' if optional else ''}{key}]", _MEMBER)
        states, amount = amounts
        if test:
            return states, _MEMBER
        if optional:
            return f"{states} ? optional.of({amount}) : optional.none()", _CONDITIONAL
        return amount, _MEMBER

    def _amounts(self, operand: ir.Node, key: str) -> tuple[str, str] | None:
        """Whether a container names a resource, and how much of it; None where something else is looked up."""
        where = named_amounts(operand.path) if isinstance(operand, ir.Field) else None
        if where is None or not isinstance(operand, ir.Field):
            return None
        resource = key[1:-1]
        if quote_string(resource) != key or "\\" in key:
            raise NotNative(f"it reads all of `{operand.path}`, not one resource by its name")
        if _is_root(operand.base):
            raise NotNative(f"it asks whether `{operand.base.name}.{operand.path}` has `{resource}`")
        record, container = self._element(operand.base)
        if record != CONTAINER:
            raise NotNative(f"it reads a `{operand.base.type}`, which the object does not say")
        return (
            container_states(container, where, resource),
            self._objects.container_amount(container, where, resource),
        )

    def _index(self, node: ir.Index) -> _Text:
        if node.operand.type.name == "map":
            return self._key(node.operand, self._at(node.index), optional=node.optional, test=False)
        if node.operand.type.name != "list":
            raise NotNative("it looks into values whose type only run time can tell")
        return (
            f"{self._at(node.operand, _MEMBER)}[{'?' if node.optional else ''}{self._at(node.index)}]",
            _MEMBER,
        )

    # --- what is computed -------------------------------------------------------------------------

    def _call(self, node: ir.Call) -> _Text:
        overload, args = node.overload, node.args
        name = overload.partition("(")[0].removeprefix(".")
        if overload in OPERATORS:
            return self._operator(name, args)
        if overload == "!_(bool)":
            return f"!{self._at(args[0], _UNARY + 1)}", _UNARY
        if overload in ("-_(int)", "-_(double)"):
            return f"-({self._at(args[0])})", _UNARY
        if overload in UNITS:
            return self.spelt(args[0])
        if name == "quantityText" and args[0].type.unit in _TEXTS:
            return _TEXTS[args[0].type.unit](self._at(args[0])), _MEMBER
        if overload in METHODS or SIZES.fullmatch(overload):
            rest = ", ".join(map(self._at, args[1:]))
            return f"{self._at(args[0], _MEMBER)}.{name}({rest})", _MEMBER
        if overload in FUNCTIONS:
            return f"{name}({', '.join(map(self._at, args))})", _MEMBER
        raise missing(overload)

    def _operator(self, name: str, args: tuple[ir.Node, ...]) -> _Text:
        if name == "@in" and isinstance(args[1], ir.Field) and named_amounts(args[1].path) is not None:
            return self._key(args[1], self._at(args[0]), optional=False, test=True)
        if any(one.type.name == "dyn" or one.type.record for one in args):
            raise NotNative("it compares values whose type only run time can tell, or whole records")
        level = LEVELS[name]
        sign = "in" if name == "@in" else name[1:-1]
        return f"{self._at(args[0], level + (level == 3))} {sign} {self._at(args[1], level + 1)}", level

    def _joined(self, args: tuple[ir.Node, ...], name: str, sign: str) -> _Text:
        level = LEVELS[name]
        return sign.join(self._at(one, level + 1) for one in args), level

    def _choice(self, node: ir.Cond) -> _Text:
        parts = self._at(node.condition, 1), self._at(node.then, 1), self._at(node.otherwise)
        return f"{parts[0]} ? {parts[1]} : {parts[2]}", _CONDITIONAL

    def _holds(self, node: ir.Holds) -> _Text:
        """A condition that may fail. CEL catches no failure, but one that missing texts alone make fail has an equal."""
        operand = node.operand
        if not can_fail(operand):
            return self.spelt(operand)
        plain = forgiving(operand)
        if can_fail(plain):
            raise NotNative("its condition can fail, and what then holds cannot be said in one expression")
        return self.spelt(plain)

    def _list(self, node: ir.MakeList) -> _Text:
        if node.optional or len({one.type for one in node.elements}) > 1:
            raise NotNative("it makes a list of values of several types")
        return f"[{', '.join(map(self._at, node.elements))}]", _MEMBER

    def _macro(self, node: ir.Comprehension) -> _Text:
        if node.macro not in _MACROS or len(node.variables) != 1:
            raise NotNative(f"an API server's CEL has no `{node.macro}` of this form")
        parts = [self._name(node.variables[0])]
        parts += [self._at(one) for one in (node.predicate, node.transform) if one is not None]
        return f"{self._at(node.range, _MEMBER)}.{node.macro}({', '.join(parts)})", _MEMBER


def _is_root(node: ir.Node) -> TypeGuard[ir.Var]:
    """Whether a node is a root that has facts."""
    return isinstance(node, ir.Var) and not node.local and node.name not in PLAIN


def _constant(value: object) -> _Text:
    match value:
        case bool():
            return ("true" if value else "false"), _MEMBER
        case str():
            return quote_string(value), _MEMBER
        case int():
            if value == INT_MIN:
                raise NotNative("it has a number that cannot be written as one")
            return str(int(value)), (_UNARY if value < 0 else _MEMBER)
        case float() if value == value and abs(value) != float("inf"):
            text = repr(value)
            return (text if set(text) & set(".e") else f"{text}.0"), (_UNARY if value < 0 else _MEMBER)
        case list() | tuple():
            if len({type(one) for one in value}) > 1:
                raise NotNative("it has a list of values of several types")
            return f"[{', '.join(_constant(one)[0] for one in value)}]", _MEMBER
        case dict():
            if any(type(key) is not str for key in value) or len({type(one) for one in value.values()}) > 1:
                raise NotNative("it has a map of values of several types")
            entries = (f"{quote_string(key)}: {_constant(one)[0]}" for key, one in value.items())
            return f"{{{', '.join(entries)}}}", _MEMBER
    raise NotNative(f"it has a constant that an API server cannot be told ({type(value).__name__})")
