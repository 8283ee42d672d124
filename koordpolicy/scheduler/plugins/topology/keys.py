"""The keys by which policy orders places in a network."""

from collections.abc import Iterable
from typing import Final

from koordpolicy.algorithms.gathering import GatherKey
from koordpolicy.scheduler.plugins.parameters import ParameterError, Parameters, texts

_KNOWN: Final = " or ".join(f"`{key}`" for key in GatherKey)


def keys_of(parameters: Parameters, name: str) -> tuple[GatherKey, ...]:
    """A parameter that is a list of keys. Raises ParameterError."""
    return gather_keys(texts(parameters, name), name)


def gather_keys(named: Iterable[str], where: str) -> tuple[GatherKey, ...]:
    """Keys by their names. Raises ParameterError."""
    found = []
    for one in named:
        try:
            found.append(GatherKey(one))
        except ValueError:
            raise ParameterError(f"`{where}` names `{one}`; that may be {_KNOWN}") from None
    return tuple(found)
