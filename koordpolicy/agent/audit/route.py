"""The audit log over HTTP, as Koordinator's agent serves it: `GET /events?size=&pageToken=`."""

from typing import Final

from koordpolicy.agent.audit.log import MOST_ON_A_PAGE, PAGE, AuditLog, UnknownReader, page_json
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.runtime.http import JSON, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection

_PARAMETERS: Final = ("size", "pageToken")
_SHOWN: Final = 40
_NEXT: Final = "Next-Page-Token"


def events_route(log: AuditLog) -> Route:
    """Pages of the log, the newest event first: JSON where it is accepted, else lines and a header."""

    async def events(request: Request) -> Response:
        if unknown := sorted(request.query.keys() - _PARAMETERS):
            return Response.text(
                f"there is no parameter {unknown[0][:_SHOWN]!r}: an address takes {' and '.join(_PARAMETERS)}\n",
                400,
            )
        said = request.query.get("size", "") or str(PAGE)
        if not (said.isascii() and said.isdigit()) or not 0 < int(said) <= MOST_ON_A_PAGE:
            return Response.text(f"size is a number from 1 to {MOST_ON_A_PAGE}\n", 400)
        try:
            lines, token = log.page(int(said), request.query.get("pageToken", ""))
        except UnknownReader:
            return Response.text("this page token is unknown or too old: begin without one\n", 409)
        if "application/json" in request.headers.get("accept", ""):
            return Response(200, json_text(page_json(lines, token)).encode() + b"\n", JSON)
        body = "".join(f"{line}\n" for line in lines)
        return Response(200, body.encode(), headers={_NEXT: token} if token else {})

    return Route("GET", "/events", events, Protection.READ)
