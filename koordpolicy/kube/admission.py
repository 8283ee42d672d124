"""Admission: those who may change or refuse a write before it is stored.

A hook is a plain function of a request, synchronous or not; the same function stands behind an HTTP
webhook or inside the in-memory cluster. Order is that of the tuples.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from koordpolicy.kube.errors import Forbidden, Invalid, KubeError, Rejected
from koordpolicy.kube.frozen import freeze
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import Resource


class Operation(StrEnum):
    """What a request wants to do. Bindings and evictions are CREATE of their subresource."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A write that waits for permission.

    `object` is what would be stored (None for DELETE), `old_object` what is stored (None for CREATE).
    `name` is "" while the server has yet to make one up, `namespace` for cluster-scoped objects.
    """

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str
    name: str
    object: Object | None
    old_object: Object | None
    user: str = ""
    dry_run: bool = False
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmissionAnswer:
    """Yes or no. `object` replaces the request's object (mutating hooks); `code` is the HTTP status of a no.

    `warnings` are for whoever asks, whatever the answer; `audit` are annotations for the server's audit log, by key.
    """

    allowed: bool = True
    message: str = ""
    object: Object | None = None
    code: int = 403
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, str] = field(default_factory=dict)


Handler: TypeAlias = Callable[[AdmissionRequest], AdmissionAnswer | Awaitable[AdmissionAnswer | None] | None]
"""Decides one request. None means: allowed, unchanged."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A handler, and the requests it is asked about.

    `fail_open` lets a request pass when the handler itself fails; otherwise the request fails with it.
    """

    name: str
    handle: Handler
    resources: tuple[Resource, ...]
    operations: tuple[Operation, ...] = (Operation.CREATE,)
    subresources: tuple[str, ...] = ("",)
    fail_open: bool = False

    def concerns(self, request: AdmissionRequest) -> bool:
        """Whether this hook is asked about the request."""
        return (
            request.operation in self.operations
            and request.subresource in self.subresources
            and request.resource in self.resources
        )


@dataclass(frozen=True, slots=True)
class AdmissionChain:
    """First every mutating hook in order, then every validating one."""

    mutating: Sequence[Hook] = ()
    validating: Sequence[Hook] = ()

    async def mutate(self, request: AdmissionRequest) -> Object | None:
        """The object as the mutating hooks leave it. Forbidden (or by the answer's code) when one refuses."""
        for hook in self.mutating:
            if hook.concerns(request):
                answer = await _ask(hook, request)
                if answer is not None and answer.object is not None and request.object is not None:
                    request = replace(request, object=freeze(answer.object))
        return request.object

    async def validate(self, request: AdmissionRequest) -> None:
        """Forbidden (or by the answer's code) when a validating hook refuses."""
        for hook in self.validating:
            if hook.concerns(request):
                await _ask(hook, request)


async def _ask(hook: Hook, request: AdmissionRequest) -> AdmissionAnswer | None:
    try:
        answer = hook.handle(request)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception as error:  # whatever a hook raises is the hook's failure, not the cluster's
        if hook.fail_open:
            return None
        raise KubeError(f"admission hook `{hook.name}` failed: {error}") from error
    if answer is not None and not answer.allowed:
        raise _refusal(f"admission hook `{hook.name}` denied the request: {answer.message}", answer.code)
    return answer


def _refusal(message: str, code: int) -> Rejected:
    if code == Invalid.CODE:
        return Invalid(message)
    if code == Forbidden.CODE:
        return Forbidden(message)
    return Rejected(message, code=code)
