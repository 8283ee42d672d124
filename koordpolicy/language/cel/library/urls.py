"""Kubernetes' URLs: absolute ones, or an absolute path."""

import re
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from koordpolicy.language.cel.errors import InvalidArgument
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.library.row import method, plain, reads, takes
from koordpolicy.language.cel.meter import UNMETERED, Meter, charge
from koordpolicy.language.cel.types import BOOL, STRING, list_of, map_of
from koordpolicy.language.cel.types import URL as URL_TYPE
from koordpolicy.language.cel.values import URL

_LIB = "kubernetes"
_TEXT_LIMIT = 8192
_MAX_FIELDS = 1000
_PARSING = 160
"""Units of taking a short URL apart."""
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f<>\"\\^`{|}]|%(?![0-9A-Fa-f]{2})")


def parse_url(text: str) -> URL:
    """Take a URL apart. Raises InvalidArgument unless it is absolute or an absolute path."""
    if len(text) > _TEXT_LIMIT or _FORBIDDEN.search(text):
        raise _refusal(text)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _refusal(text) from None
    if not parts.scheme and not text.startswith("/"):
        raise _refusal(text)
    opaque = parts.scheme and not parts.netloc and not parts.path.startswith("/")  # as `mailto:a@b`
    return URL(text, parts.scheme, _host(parts, port), "" if opaque else parts.path, parts.query)


def _refusal(text: str) -> InvalidArgument:
    return InvalidArgument(f"`{text[:100]}` is no URL such as https://example.com/path")


def _host(parts: SplitResult, port: int | None) -> str:
    host = parts.netloc.rpartition("@")[2]
    return host if port is None or host.endswith(f":{port}") else _refused_port(host)


def _refused_port(host: str) -> str:
    raise InvalidArgument(f"`{host}` has an impossible port")


def _accepts(text: str) -> bool:
    try:
        parse_url(text)
    except InvalidArgument:
        return False
    return True


def _hostname(url: URL) -> str:
    if url.host.startswith("["):
        return unquote(url.host[1:].partition("]")[0])
    return url.host.partition(":")[0]


def _port(url: URL) -> str:
    rest = url.host.partition("]")[2] if url.host.startswith("[") else url.host
    return rest.partition(":")[2]


def _query(url: URL, meter: Meter = UNMETERED) -> dict[str, list[str]]:
    charge(meter, _PARSING + 10 * len(url.query))
    try:
        return parse_qs(url.query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise InvalidArgument(f"a query of more than {_MAX_FIELDS} fields") from None


_ONE = (URL_TYPE,)

LIBRARY: tuple[Function, ...] = (
    plain("url", _LIB, "a URL from text", "url('https://a.b:80/c?d=e').getHost() == 'a.b:80'",
          (STRING,), URL_TYPE, parse_url, reads(0, base=_PARSING)),
    plain("isURL", _LIB, "whether a text is a URL", "isURL('https://a.b')", (STRING,), BOOL, _accepts, reads(0, base=_PARSING)),
    method("getScheme", _LIB, "the scheme, such as https", "url('https://a.b').getScheme() == 'https'",
           _ONE, STRING, lambda url: url.scheme),
    method("getHost", _LIB, "host and port", "url('https://a.b:80').getHost() == 'a.b:80'",
           _ONE, STRING, lambda url: url.host),
    method("getHostname", _LIB, "the host without port and brackets", "url('https://[::1]:80').getHostname() == '::1'",
           _ONE, STRING, _hostname),
    method("getPort", _LIB, "the port as text, '' for none", "url('https://a.b:80').getPort() == '80'",
           _ONE, STRING, _port),
    method("getEscapedPath", _LIB, "the path as it was written", "url('https://a.b/c%20d').getEscapedPath() == '/c%20d'",
           _ONE, STRING, lambda url: url.path),
    method("getQuery", _LIB, "the query as a map from name to values", "url('/?a=1&a=2').getQuery() == {'a': ['1', '2']}",
           _ONE, map_of(STRING, list_of(STRING)), _query, takes(_PARSING + 10 * _TEXT_LIMIT)),
)  # fmt: skip
