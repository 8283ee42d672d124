"""How comprehensions are written: a loop with statements, no closures."""

from collections.abc import Callable

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.library.lists import sort_by
from koordpolicy.language.cel.lower.body import Body
from koordpolicy.language.cel.lower.source import Block, one_line
from koordpolicy.language.cel.meter import Meter
from koordpolicy.language.cel.prices import ABSORBED


def comprehension(body: Body, node: ir.Comprehension, operands: tuple[int, ...]) -> str:
    """The name of a comprehension's result, its loop written ahead."""
    rest = iter(operands[1:])
    predicate = next(rest) if node.predicate is not None else None
    transform = next(rest) if node.transform is not None else None
    body.may_fail = True
    walked, steps = _range(body, node, operands[0])
    body.block.line(f"meter[0] -= len({walked}) * {body.program.step_price(node, operands)}")
    body.block.line("if meter[0] < 0:")
    body.block.nest(one_line("stop(meter)"))
    names = [body.fresh() for _ in node.variables]
    head = f"for {', '.join(names)} in {steps}:"
    write = _Loop(body, dict(zip(node.variables, names, strict=True)), head, predicate, transform)
    return _WRITERS[node.macro](write)


_ORDERLESS = frozenset(("all", "exists", "exists_one", "transformMap"))
"""Macros whose result does not show the order in which keys were walked."""


def _range(body: Body, node: ir.Comprehension, operand: int) -> tuple[str, str]:
    """What is walked, by a name that has a length, and the text of its iteration."""
    text = body.text(operand)
    kind, pairs = node.range.type, len(node.variables) == 2
    if kind.name == "list":
        walked = body.name(text)
        return walked, f"enumerate({walked})" if pairs else walked
    if kind.name != "map":
        walked = body.name(f"iterate_pairs({text}, meter)" if pairs else f"iterate({text}, meter)")
        return walked, walked
    texts = bool(kind.params) and kind.params[0].name == "string"  # other keys have a form of their own
    if texts and node.macro in _ORDERLESS:
        walked = body.name(text)
        return walked, f"{walked}.items()" if pairs else walked
    if pairs:
        walked = body.name(f"map_pairs({text}, meter)")
    else:
        walked = body.name(f"sorted_keys({text}, meter)")
    return walked, walked


class _Loop:
    """A loop about to be written."""

    def __init__(
        self, body: Body, names: dict[str, str], head: str, predicate: int | None, transform: int | None
    ) -> None:
        self.body = body
        self.names = names
        self.head = head
        self.predicate = predicate
        self.transform = transform

    def place(self, inner: Block) -> None:
        """Put the finished body under its head."""
        self.body.block.line(self.head)
        self.body.block.nest(inner)

    def decide(self, stop_at: bool) -> str:
        """all (stop at false) and exists (stop at true): an early answer forgives errors."""
        body = self.body
        assert self.predicate is not None
        result, pending = body.fresh(), body.fresh()
        with body.loop(self.names) as inner:
            with body.branch() as test, body.watch() as seen:
                text = body.truth(self.predicate)
                test.line(f"if {text}:" if stop_at else f"if not {text}:")
                test.nest(one_line(f"{result} = {stop_at}", "break"))
            if seen.may_fail:
                inner.line("try:")
                inner.nest(test)
                inner.line("except Exception as error:")
                inner.nest(one_line(f"charge(meter, {ABSORBED})", f"{pending} = absorbed(error, {pending})"))
            else:
                inner.append(test)
        body.block.line(f"{result} = {not stop_at}")
        if not seen.may_fail:
            self.place(inner)
            return result
        body.block.line(f"{pending} = None")
        self.place(inner)
        body.block.line(f"if {pending} is not None and {result} is {not stop_at}:")
        body.block.nest(one_line(f"raise {pending}"))
        return result

    def collect(self, start: str, add: Callable[[str, str], str], *, pick: bool = False) -> str:
        """A loop that adds something for each element that passes.

        `add(result, value)` is the statement; `value` is the transform, or with `pick` the element.
        """
        body = self.body
        result = body.fresh()
        body.block.line(f"{result} = {start}")
        with body.loop(self.names) as inner:
            if self.predicate is not None:
                inner.line(f"if not {body.truth(self.predicate)}:")
                inner.nest(one_line("continue"))
            if pick or self.transform is None:
                value = list(self.names.values())[-1]
            else:
                value = body.text(self.transform)
            inner.line(add(result, value))
        self.place(inner)
        return result

    @property
    def key(self) -> str:
        """The Python name of the first variable."""
        return next(iter(self.names.values()))


def _append(result: str, value: str) -> str:
    return f"{result}.append({value})"


def _exists_one(loop: _Loop) -> str:
    count = loop.collect("0", lambda result, _: f"{result} += 1")
    return f"({count} == 1)"


def _filter(loop: _Loop) -> str:
    return loop.collect("[]", _append, pick=True)


def _list(loop: _Loop) -> str:
    return loop.collect("[]", _append)


def _map_values(loop: _Loop) -> str:
    return loop.collect("{}", lambda result, value: f"put({result}, {loop.key}, {value})")


def _map_entries(loop: _Loop) -> str:
    return loop.collect("{}", lambda result, value: f"merge({result}, {value}, meter)")


def _sort(loop: _Loop) -> str:
    element = list(loop.names.values())[-1]
    pairs = loop.body.name(loop.collect("[]", lambda result, value: f"{result}.append(({element}, {value}))"))
    sort = loop.body.program.constant(_sort_pairs, ("function", "sortBy"))
    return f"{sort}({pairs}, meter)"


def _sort_pairs(pairs: list[tuple[object, object]], meter: Meter) -> list[object]:
    return sort_by([value for value, _ in pairs], [key for _, key in pairs], meter)


_WRITERS: dict[str, Callable[[_Loop], str]] = {
    "all": lambda loop: loop.decide(False),
    "exists": lambda loop: loop.decide(True),
    "exists_one": _exists_one,
    "map": _list,
    "filter": _filter,
    "transformList": _list,
    "transformMap": _map_values,
    "transformMapEntry": _map_entries,
    "sortBy": _sort,
}
