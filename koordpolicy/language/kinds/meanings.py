"""What the fields of models mean: the texts below their declarations."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from textwrap import dedent


@cache
def meanings(model: type) -> Mapping[str, str]:
    """The text below each field, by the field's name, inherited ones included.

    Read from the source when somebody asks: schemas, the manual and findings do, and processes never. Fields without
    a text are absent, and all are where there is no source.
    """
    return {
        name: text for kind in reversed(model.__mro__) if kind is not object for name, text in _declared(kind)
    }


def _declared(kind: type) -> Iterator[tuple[str, str]]:
    if kind.__module__.partition(".")[0] != __name__.partition(".")[0]:
        return
    try:
        source = inspect.getsource(kind)
    except OSError:
        return
    (declared,) = ast.parse(dedent(source)).body
    assert isinstance(declared, ast.ClassDef)
    for field, below in pairwise(declared.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
