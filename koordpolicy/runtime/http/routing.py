"""What a server is asked and what it answers, as values, and the routes between: no library, no sockets."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from koordpolicy.runtime.http.authentication import Protection

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked. Header names are in lower case; what is not ASCII in values is as Latin-1 reads it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered. The `last` one of a connection ends it, so that the client looks for another server."""

    status: int = 200
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)
    last: bool = False

    @classmethod
    def text(cls, text: str, status: int = 200) -> "Response":
        """A few words."""
        return cls(status, text.encode("utf-8", "backslashreplace"))


Handler = Callable[[Request], Response | Awaitable[Response]]
"""What answers: at once where it can, which spares a task, and otherwise once it has waited for something."""


@dataclass(frozen=True, slots=True)
class Route:
    """What answers requests of one method to one path, and who may ask."""

    method: str
    path: str
    handler: Handler
    protection: Protection = Protection.WRITE

    async def answer(self, request: Request) -> Response:
        """What its handler answers, waited for where it takes time."""
        answer = self.handler(request)
        return answer if isinstance(answer, Response) else await answer


class Routes:
    """Routes by method and path."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._routes = {(route.method, route.path): route for route in routes}
        self._paths = {route.path for route in routes}

    def find(self, method: str, path: str) -> Route | Response:
        """The route of a request, or the answer where there is none."""
        route = self._routes.get((method, path))
        if route is None and method == "HEAD":
            route = self._routes.get(("GET", path))
        if route is None:
            return _NOT_SO if path in self._paths else _NOT_FOUND
        return route

    def named(self, path: str) -> str:
        """A path as metrics know it."""
        return path if path in self._paths else "other"


_NOT_SO: Final = Response.text("method not allowed\n", 405)
_NOT_FOUND: Final = Response.text("not found\n", 404)
