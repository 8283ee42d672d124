"""Who may ask a server for what: by client certificate, by a token in a file, or by what the API server says.

Each route has a protection. Credentials, where a server takes any, are asked for by all routes but those that probes
and signed messages use. Where it takes none, what may be done without them was said when it was started (`serving`).
"""

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol


class Protection(StrEnum):
    """What a route lets its callers do."""

    OPEN = "open"
    """Ask what everyone may know, such as whether the process is well."""
    READ = "read"
    """Read what the process tells of itself."""
    WRITE = "write"
    """Make it change something, or work for the caller."""
    SIGNED = "signed"
    """Bring a message that proves by itself who has sent it: the handler looks."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """How callers of a server show that they may ask it, as set by flags.

    `names` are the common names of client certificates that count, none meaning all of the CA's. `token_file` holds
    a token that opens everything, and is read at each use. `delegated` asks the API server who has a token
    (TokenReview), and whether that user, or a certificate's, may do what the request does (SubjectAccessReview).
    `anonymous_reads` and `anonymous_writes` let callers do so without credentials.
    """

    names: tuple[str, ...] = ()
    token_file: Path | None = None
    delegated: bool = False
    anonymous_reads: bool = False
    anonymous_writes: bool = False

    @property
    def takes_tokens(self) -> bool:
        """Whether a bearer token may open something."""
        return self.delegated or self.token_file is not None


_READING: Final = Authentication(anonymous_reads=True)


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, in Kubernetes' terms."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request is not answered; `status` is HTTP's."""

    status: int
    message: str


class CannotReview(Exception):
    """The API server did not say who somebody is, or what they may do; the message says why."""


class Reviews(Protocol):
    """The API server's word on tokens and users. Methods raise `CannotReview`."""

    async def user_of(self, token: str) -> User | None:
        """Whose token it is; None when it is nobody's."""
        ...

    async def may(self, user: User, verb: str, path: str) -> bool:
        """Whether a user may do this to a path that is no resource: `get` to `/metrics`."""
        ...


class Authenticator:
    """Decides on each request. `reviews` is needed where the settings delegate."""

    def __init__(
        self,
        settings: Authentication = _READING,
        *,
        client_certificates: bool = False,
        reviews: Reviews | None = None,
    ) -> None:
        if settings.delegated and reviews is None:
            raise ValueError("to delegate needs somebody to delegate to")
        self._settings = settings
        self._certificates = client_certificates
        self._reviews = reviews if settings.delegated else None
        self._open = {Protection.OPEN, Protection.SIGNED}
        if settings.anonymous_reads:
            self._open.add(Protection.READ)
        if settings.anonymous_writes:
            self._open.add(Protection.WRITE)

    def is_open(self, protection: Protection) -> bool:
        """Whether nobody needs to show who they are."""
        return protection in self._open

    def who(self, protection: Protection) -> str:
        """Who may ask, in words."""
        if protection is Protection.SIGNED:
            return "whoever signs the message with the secret"
        return "anyone" if self.is_open(protection) else f"callers with {self._ways()}"

    async def refusal(
        self,
        protection: Protection,
        method: str,
        path: str,
        authorization: str,
        certificate: Mapping[str, Any] | None,
    ) -> Refused | None:
        """Why a request is refused; None where it is not.

        `authorization` is the header as it came, `certificate` what `ssl` says of the client's verified one.
        """
        if self.is_open(protection):
            return None
        scheme, _, token = authorization.partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        try:
            refused = Refused(401, f"unauthorized: this needs {self._ways()}")
            if certificate is not None and self._certificates:
                refused_user = await self._refused_certificate(user_of(certificate), method, path)
                if refused_user is None:
                    return None
                refused = refused_user
            if token and self._settings.takes_tokens:
                return await self._refused_token(token, method, path)
            return refused
        except CannotReview as problem:
            return Refused(503, f"credentials cannot be checked now: {problem}")

    async def _refused_certificate(self, user: User, method: str, path: str) -> Refused | None:
        names = self._settings.names
        if names and user.name not in names:
            return Refused(403, f"forbidden: no certificate of `{user.name}` is accepted here")
        if self._reviews is None:
            return None
        return await self._refused_user(self._reviews, user, method, path)

    async def _refused_token(self, token: str, method: str, path: str) -> Refused | None:
        if self._settings.token_file is not None:
            expected = await asyncio.to_thread(_read_token, self._settings.token_file)
            # What is not ASCII cannot be compared as text; as bytes it can, and is not equal.
            if hmac.compare_digest(token.encode("utf-8", "replace"), expected.encode()):
                return None
        user = None
        # A token that UTF-8 cannot write is nobody's, and no question to the API server.
        if self._reviews is not None and token.isascii():
            user = await self._reviews.user_of(token)
        if self._reviews is None or user is None:
            return Refused(401, "unauthorized: the token is not known")
        return await self._refused_user(self._reviews, user, method, path)

    @staticmethod
    async def _refused_user(reviews: Reviews, user: User, method: str, path: str) -> Refused | None:
        verb = method.lower()
        if await reviews.may(user, verb, path):
            return None
        return Refused(403, f"forbidden: `{user.name}` may not {verb} {path} (a nonResourceURL for RBAC)")

    def _ways(self) -> str:
        ways = []
        if self._certificates:
            ways.append("a client certificate")
        if self._settings.delegated:
            ways.append("a bearer token of the cluster")
        if self._settings.token_file is not None:
            ways.append("the bearer token")
        return " or ".join(ways) or "credentials, and none are taken here"


def user_of(certificate: Mapping[str, Any]) -> User:
    """The user of a client certificate, as Kubernetes takes it: common name and organizations."""
    found: dict[str, list[str]] = {}
    for parts in certificate.get("subject", ()):
        for name, value in parts:
            found.setdefault(name, []).append(value)
    # Of several common names the last is the most specific; Go's reading, which the API server has, is the same.
    return User(found.get("commonName", [""])[-1], groups=tuple(found.get("organizationName", ())))


def _read_token(path: Path) -> str:
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotReview(f"{path} cannot be read: {error}") from None
    if not token:
        raise CannotReview(f"{path} is empty")
    return token
