"""One request to a service's API, as JSON both ways, with a token that goes nowhere else."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.cli.command import CannotRunError
from koordpolicy.diagnostics.escaping import encodable, one_line

_PATIENCE: Final = 30.0
"""Seconds without a byte."""

_MOST: Final = 256 << 20
"""Bytes of an answer: a hundred comments of a million characters each."""

MOST_PAGES: Final = 1_000
"""Pages of comments, a hundred each, that are read at most to find one's own."""

_LONGEST_WORD: Final = 300
"""Characters of what a service says of an error."""

_REMEDIES: Final[Mapping[int, str]] = {
    401: "the token is none, or has ended: make a new one",
    403: "the token may not do this: GitHub's wants `pull-requests: write` in `permissions`, GitLab's the scope `api` and the role "
    "Reporter; pull requests of forks get none that may",
    404: "the token sees no such merge request: it is one of another project, or may not read this one",
}


class _Nowhere(urllib.request.HTTPRedirectHandler):
    """Follows nobody: the token is for the service that was named."""

    def redirect_request(self, *_: object) -> None:
        return None


class ApiClient:
    """A service's API, asked with the headers that carry the token."""

    def __init__(self, name: str, headers: Mapping[str, str], authorities: str = "") -> None:
        """`authorities` is a file of certificates to trust besides the machine's."""
        self._name = name
        self._headers = {"User-Agent": "koordpolicy", "Accept": "application/json", **headers}
        trust = ssl.create_default_context()
        if authorities:
            try:
                trust.load_verify_locations(authorities)
            except OSError as error:
                raise CannotRunError(
                    f"the certificates of `{authorities}` cannot be read: {error.strerror or error}"
                ) from None
        self._opener = urllib.request.build_opener(_Nowhere(), urllib.request.HTTPSHandler(context=trust))

    def ask(
        self, method: str, url: str, given: Mapping[str, Any] | None = None
    ) -> tuple[Any, Mapping[str, str]]:
        """The answer and its headers. Raises `CannotRunError`, which never has the token in it."""
        if not url.startswith(("https://", "http://")):
            raise CannotRunError(f"{self._name} would be asked at `{url}`, which is no address")
        body = None if given is None else encodable(json.dumps(given, ensure_ascii=False)).encode()
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        asked = urllib.request.Request(url, body, headers, method=method)  # noqa: S310 - looked at above
        try:
            with self._opener.open(asked, timeout=_PATIENCE) as answer:
                text = answer.read(_MOST + 1)
                said = answer.headers
        except urllib.error.HTTPError as error:
            raise CannotRunError(self._refused(error, url)) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise CannotRunError(f"{self._name} does not answer at {url}: {reason}") from None
        if len(text) > _MOST:
            raise CannotRunError(f"{self._name} answers with more than {_MOST >> 20} MiB at {url}")
        try:
            return json.loads(text), said
        except (ValueError, RecursionError):
            raise CannotRunError(f"{self._name} answers with something that is no JSON at {url}") from None

    def told(self, value: Any, *path: str) -> Any:
        """What stands at a path of an answer; raises `CannotRunError` where nothing does."""
        found = value
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
            if found is None:
                raise CannotRunError(
                    f"{self._name} answers without `{'.'.join(path)}`, which its documentation promises"
                )
        return found

    def listed(self, value: Any) -> list[dict[str, Any]]:
        """The objects of a list; raises `CannotRunError` where it is none."""
        if not isinstance(value, list):
            raise CannotRunError(
                f"{self._name} answers with something that is no list, where its documentation promises one"
            )
        return [one for one in value if isinstance(one, dict)]

    def _refused(self, error: urllib.error.HTTPError, url: str) -> str:
        remedy = _REMEDIES.get(error.code, "")
        try:
            said = error.read(_LONGEST_WORD).decode(errors="replace").strip()
        except (OSError, http.client.HTTPException):
            said = ""
        why = f"{error.code} {error.reason}" + (f", {one_line(said)}" if said else "")
        return f"{self._name} refuses {url}: {why}" + (f"; {remedy}" if remedy else "")


def demand_token(token: str, variable: str) -> str:
    """The token as a header may carry it; raises `CannotRunError` without showing it."""
    kept = token.strip()
    if not kept:
        raise CannotRunError(f"{variable} is empty: give the step that comments a token by it")
    if not (kept.isascii() and kept.isprintable()):
        raise CannotRunError(f"{variable} is no token: it has characters that none has")
    return kept
