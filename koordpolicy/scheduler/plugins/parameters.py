"""How a plugin reads its parameters."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Parameters(dict[str, Any]):
    """The values of a plugin's parameters by name, as run-time values. None: policy says nothing.

    Not to be changed: where policy says the same for every pod, all pods share one.
    """

    __slots__ = ("_made",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._made: dict[Callable[[Parameters], Any], Any] = {}

    def once(self, read: "Callable[[Parameters], T]") -> T:
        """What `read` makes of them, made once. Raises what it raises."""
        if read not in self._made:
            self._made[read] = read(self)
        return self._made[read]  # type: ignore[no-any-return]  # it is what this `read` has given


class ParameterError(ValueError):
    """A parameter has a value that the plugin cannot work with; the message names it."""


def text(parameters: Parameters, name: str, default: str) -> str:
    """A parameter that is a text. Raises ParameterError."""
    value = parameters.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise ParameterError(f"`{name}` is not a text")
    return value


def texts(parameters: Parameters, name: str) -> tuple[str, ...]:
    """A parameter that is a list of texts; empty when policy says nothing. Raises ParameterError."""
    value = parameters.get(name) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ParameterError(f"`{name}` is not a list of texts")
    return tuple(value)


def weights(parameters: Parameters) -> Mapping[str, int]:
    """The parameter `weights`. Raises ParameterError."""
    value = parameters.get("weights") or {}
    if not isinstance(value, Mapping) or not all(
        type(weight) is int and weight >= 0 for weight in value.values()
    ):
        raise ParameterError("`weights` is not a mapping of resources to whole numbers from 0")
    return value
