"""The record of the node over HTTP, for `koordpolicy explain node`: `GET /node`."""

from collections.abc import Callable, Mapping
from typing import Any

from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.runtime.http import JSON, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection


class ExplanationRoute:
    """Answers once somebody can `tell`; who cannot yet gives None."""

    def __init__(self) -> None:
        self.tell: Callable[[], Mapping[str, Any] | None] = lambda: None

    def route(self) -> Route:
        """What a server takes."""

        async def node(request: Request) -> Response:
            del request
            record = self.tell()
            if record is None:
                return Response.text("the agent does not know its node yet\n", 503)
            return Response(200, json_text(record).encode() + b"\n", JSON)

        return Route("GET", "/node", node, Protection.READ)
