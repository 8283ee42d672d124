"""Where objects live below the server's address, safely put together."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlencode

from koordpolicy.kube.errors import Rejected
from koordpolicy.kube.resources import Resource

_HARMLESS: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def path_of(resource: Resource, namespace: str | None, name: str = "", subresource: str = "") -> str:
    """The path of an object, or of all of them where no name is given; None is no namespace.

    Raises Rejected for names that would lead elsewhere.
    """
    path = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    if namespace is not None:
        path += f"/namespaces/{segment(namespace)}"
    path += f"/{resource.plural}"
    if name:
        path += f"/{segment(name)}"
    return f"{path}/{subresource}" if subresource else path


def segment(name: str) -> str:
    """A name as one part of a path."""
    if _HARMLESS.fullmatch(name):
        return name
    if name in {"", ".", ".."} or "/" in name or "%" in name:
        raise Rejected(f"`{name}` cannot be a name: it must not be empty, dots, or contain `/` or `%`")
    return quote(name, safe="")


def query_of(parameters: Mapping[str, str | int | None]) -> str:
    """`?a=b&c=d`, leaving out what is empty or zero; "" when nothing is left."""
    return _query(tuple((name, value) for name, value in parameters.items() if value))


@lru_cache(maxsize=64)
def _query(given: tuple[tuple[str, str | int], ...]) -> str:
    return f"?{urlencode(given)}" if given else ""
