"""The operands of a rule, brought together, and the functions of NumPy that rules write."""

from collections.abc import Callable, Sequence

from koordpolicy.language.cel.lower.columns.emitter import Emitter
from koordpolicy.language.cel.lower.columns.symbols import Bounds, EntrySpace, Vec
from koordpolicy.language.cel.lower.columns.writer import OUT

FUNCTIONS = {
    "+": "np.add", "-": "np.subtract", "*": "np.multiply", "/": "np.divide", "//": "np.floor_divide",
    "%": "np.remainder", "<": "np.less", "<=": "np.less_equal", ">": "np.greater", ">=": "np.greater_equal",
    "==": "np.equal", "!=": "np.not_equal",
}  # fmt: skip


_BY_KEYWORD = frozenset(("np.minimum", "np.maximum"))
"""Functions that take the array for their result by keyword only."""


class Operands:
    """Operands brought into their common space: texts of values, joined errors, bounds on demand."""

    def __init__(self, emitter: Emitter, args: Sequence[Vec]) -> None:
        space = emitter.space_of(args)
        assert space is not None, "what is one for all rows is not for column rules"
        self.emitter = emitter
        self.writer = emitter.writer
        self.space: EntrySpace = space
        self.args = args
        self.texts = [emitter.values_in(arg, space) for arg in args]
        self.errors = emitter.join_errors(args, space)

    def bounds(self, at: int) -> Bounds:
        return self.emitter.bounds_of(self.args[at])

    def result(
        self, kind: str, function: str, *texts: str, name: str = "", errors: str | None = None,
        bounds: Callable[[], Bounds] | None = None,
    ) -> Vec:  # fmt: skip
        """The array that a NumPy function of these texts writes."""
        last = f"out={OUT}" if function in _BY_KEYWORD else OUT
        made = self.emitter.array(kind, self.space, f"{function}({', '.join(texts)}, {last})", name=name)
        return Vec(kind, made, self.space, errors or self.errors, bounds, fresh=True)
