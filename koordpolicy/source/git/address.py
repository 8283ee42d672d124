"""Where a repository is, without what opens it: addresses are shown, logged and handed on; passwords are not."""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

SCHEMES: Final = ("https", "http", "ssh", "git", "file")
"""Ways to a repository that we go. Git knows others, some of which run programs."""

_SCP: Final = re.compile(r"(?P<host>(?:[^/@:\s]+@)?(?:\[[0-9a-fA-F:]+\]|[^/:\s]+)):(?P<path>(?!:).+)")


class BadAddress(ValueError):
    """This is no address of a repository; the message says what is wrong with it, without showing it."""


@dataclass(frozen=True, slots=True)
class Address:
    """A repository's address.

    `url` is what Git is given and `shown` what people see; neither holds a password. `username` and `password`
    are what the given address held. `scheme` is "file" for a path.
    """

    url: str
    shown: str
    scheme: str
    name: str
    """The last element, without `.git`."""
    username: str = ""
    password: str | None = field(default=None, repr=False)

    @property
    def server(self) -> str:
        """Scheme, host and port: all that a password may be sent to. "" where there is no such thing."""
        if self.scheme not in {"http", "https"}:
            return ""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @property
    def protocols(self) -> tuple[str, ...]:
        """What Git may speak on the way there: what was asked for, and safer ways it may be sent on to."""
        return ("https", "http") if self.scheme == "http" else (self.scheme,)


def parse(given: str) -> Address:
    """The address of a repository: a URL, `[user@]host:path` as for ssh, or a path. Raises `BadAddress`."""
    if not given or given.startswith("-") or any(ord(one) <= ord(" ") or one == "\x7f" for one in given):
        raise BadAddress("the address of the repository is empty, begins with `-`, or holds blanks")
    if "://" in given:
        return _url(given)
    if "::" in given.partition("/")[0]:
        raise BadAddress(
            "addresses of the form `helper::address` are not supported, since they can run programs"
        )
    if not given.startswith((".", "/")) and (scp := _SCP.fullmatch(given)) is not None:
        return Address(given, given, "ssh", _name(scp["path"]))
    return Address(given, given, "file", _name(given))


def _url(given: str) -> Address:
    try:
        parts = urlsplit(given)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadAddress("the address of the repository is no URL") from None
    if parts.scheme not in SCHEMES:
        raise BadAddress(f"`{parts.scheme}://` is not supported; use one of {', '.join(SCHEMES)}")
    name = _name(parts.path)
    if parts.scheme == "file":
        return Address(given, given, "file", name)
    if not host or host.startswith("-"):
        raise BadAddress("the address of the repository names no host")
    shown = SplitResult(parts.scheme, _at(host, port), parts.path, "", "").geturl()
    username = unquote(parts.username or "")
    # Some hosts take a token for a user's name, so that is no more fit to be shown than the password. Without a
    # password it is for Git's helpers to find one for that user.
    user = f"{parts.username}@" if parts.username and parts.password is None else ""
    url = SplitResult(parts.scheme, user + _at(host, port), parts.path, parts.query, "").geturl()
    if parts.scheme in {"http", "https"} and parts.password is not None:
        return Address(url, shown, parts.scheme, name, username, unquote(parts.password))
    return Address(url, shown, parts.scheme, name, username)


def _at(host: str, port: int | None) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return bracketed if port is None else f"{bracketed}:{port}"


def _name(path: str) -> str:
    name = re.split(r"[/:]", path.rstrip("/"))[-1].removesuffix(".git")
    if name == "" and path.rstrip("/").endswith("/.git"):
        name = re.split(r"[/:]", path.rstrip("/"))[-2]
    if name in {"", ".", ".."}:
        raise BadAddress("the address of the repository ends without a name")
    return name
