"""Pickles of plain values that are read again in half the time.

Frozen dataclasses with slots are most of what compiled policies are made of, and Python reads each back field by field,
by what it finds out about its class anew. Here they are calls of their classes: what is read checks itself as what is made.
"""

import dataclasses
import io
import pickle
from functools import cache
from typing import IO, Any, NamedTuple


class Pickler(pickle.Pickler):
    """Writes what `pickle.load` reads. What refers to itself must not be a dataclass."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)

    def reducer_override(self, value: Any) -> Any:
        """A call of the class with the fields; `NotImplemented` for all that Python knows better."""
        made_by: type = type(value)
        fields = _fields(made_by)
        if fields is None:
            return NotImplemented
        values = tuple([getattr(value, name) for name in fields.names])
        return (_by_name, (made_by, *values)) if fields.by_name else (made_by, values)


def dumps(value: object) -> bytes:
    """The value as `pickle.loads` reads it. Raises what `pickle` raises for values that are not plain."""
    stream = io.BytesIO()
    Pickler(stream).dump(value)
    return stream.getvalue()


class _Fields(NamedTuple):
    """What a constructor takes, and whether some of it by name alone."""

    names: tuple[str, ...]
    by_name: bool


def _by_name(made_by: type, *values: object) -> object:
    """Called by what is read: it stands in pickles under this name."""
    fields = _fields(made_by)
    assert fields is not None
    return made_by(**dict(zip(fields.names, values, strict=True)))


@cache
def _fields(made_by: type) -> _Fields | None:
    """None where the fields are not all that there is to a value, or it says itself what is kept."""
    if not dataclasses.is_dataclass(made_by) or hasattr(made_by, "__post_init__"):
        return None
    # Where slots and frozen come together, and nobody said otherwise, dataclasses has brought its own.
    if getattr(made_by.__getstate__, "__module__", "") != dataclasses.__name__ or _says_itself(made_by):
        return None
    fields = dataclasses.fields(made_by)
    if not all(one.init for one in fields):
        return None
    return _Fields(tuple(one.name for one in fields), any(one.kw_only for one in fields))


def _says_itself(made_by: type) -> bool:
    return any(
        getattr(made_by, name) is not getattr(object, name) for name in ("__reduce_ex__", "__reduce__")
    )
