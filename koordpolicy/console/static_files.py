"""The files of the page, read once: they are few, and stand beside this module in the wheel."""

from pathlib import Path
from typing import Final

from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.routing import Handler, Request, Response, Route

FOLDER: Final = Path(__file__).parent / "static"

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def static_routes() -> list[Route]:
    """A route for each file; `index.html` at `/`. They say nothing of any cluster, so everybody may have them."""
    found = []
    for path in sorted(FOLDER.rglob("*")):
        kind = _TYPES.get(path.suffix)
        if kind is None:
            continue
        at = "/" if path.name == "index.html" else f"/{path.relative_to(FOLDER).as_posix()}"
        found.append(Route("GET", at, _always(Response(200, path.read_bytes(), kind)), Protection.OPEN))
    return found


def _always(response: Response) -> Handler:
    def handler(_: Request) -> Response:
        return response

    return handler
