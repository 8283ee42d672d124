"""What can go wrong between us and a cluster.

KubeError
├── NotFound          the object, its namespace or its resource is not there; often fine
├── AlreadyExists     the name is taken; read it, or choose another
├── Conflict          someone was quicker, or a precondition failed; read again and retry
├── Rejected          the server refuses this request; retrying it as it stands will not help
│   ├── Invalid       the object breaks a rule of its kind; `causes` says where
│   └── Forbidden     permissions or an admission rule say no
├── TooManyRequests   slow down, or the disruption budget is used up; try again after `retry_after`
├── Gone              the version to continue from is not served any more (or not yet); list again
└── Unreachable       no answer, or a failing server; keep the last good state and try later
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Cause:
    """One fault of an object: the JSON path of the field, and what is wrong with it."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class KubeError(Exception):
    """A request that did not succeed.

    `code` and `reason` are the HTTP status and the reason word of a Kubernetes Status; `message` is one
    phrase for people.
    """

    CODE: ClassVar[int] = 500
    REASON: ClassVar[str] = "InternalError"

    def __init__(self, message: str, *, code: int | None = None, reason: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.CODE if code is None else code
        self.reason = self.REASON if reason is None else reason


class NotFound(KubeError):
    """The object, its namespace or its resource is not there."""

    CODE = 404
    REASON = "NotFound"


class AlreadyExists(KubeError):
    """An object of this name exists."""

    CODE = 409
    REASON = "AlreadyExists"


class Conflict(KubeError):
    """The object changed since it was read, or a precondition does not hold."""

    CODE = 409
    REASON = "Conflict"


class Rejected(KubeError):
    """The server refuses the request; the same request will be refused again."""

    CODE = 400
    REASON = "BadRequest"


class Invalid(Rejected):
    """The object breaks a rule of its kind."""

    CODE = 422
    REASON = "Invalid"

    def __init__(self, message: str, causes: tuple[Cause, ...] = ()) -> None:
        super().__init__(message)
        self.causes = causes


class Forbidden(Rejected):
    """Permissions or an admission rule say no."""

    CODE = 403
    REASON = "Forbidden"


class TooManyRequests(KubeError):
    """Not now. `retry_after` is the number of seconds the server asks us to wait, 0 when it names none."""

    CODE = 429
    REASON = "TooManyRequests"

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Gone(KubeError):
    """The resource version or continue token is outside of what the server still (or yet) serves."""

    CODE = 410
    REASON = "Expired"


class Unreachable(KubeError):
    """No answer, a broken connection, or a server that fails."""

    CODE = 503
    REASON = "ServiceUnavailable"
