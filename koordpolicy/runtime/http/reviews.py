"""Asks the API server who has a token and what a user may do, as its own components do: answers are kept for a moment.

Whoever sends tokens that are nobody's must not become a flood of questions: few are asked at a time, and a no is
remembered as well as a yes.
"""

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from koordpolicy.kube import Cluster, KubeError
from koordpolicy.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.http.authentication import CannotReview, User

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReviewLimits:
    """`kept` seconds an answer counts, as in Kubernetes' own components; `remembered` answers and `asking` questions at
    a time, at most; `seconds` for an answer.
    """

    kept: float = 10.0
    remembered: int = 1024
    asking: int = 8
    seconds: float = 5.0


_USUAL: Final = ReviewLimits()


class ClusterReviews:
    """The word of a cluster's API server, by TokenReview and SubjectAccessReview."""

    def __init__(self, cluster: Cluster, limits: ReviewLimits = _USUAL) -> None:
        self._cluster = cluster
        self._seconds = limits.seconds
        self._turn = asyncio.Semaphore(limits.asking)
        self._users: _Kept[User | None] = _Kept(limits)
        self._permissions: _Kept[bool] = _Kept(limits)

    async def user_of(self, token: str) -> User | None:
        """See `Reviews.user_of`."""
        key = hashlib.sha256(token.encode()).hexdigest()
        return await self._users.get(key, lambda: self._review_token(token))

    async def may(self, user: User, verb: str, path: str) -> bool:
        """See `Reviews.may`."""
        key = json.dumps([user.name, user.uid, user.groups, user.extra, verb, path], sort_keys=True)
        return await self._permissions.get(key, lambda: self._review_access(user, verb, path))

    async def _review_token(self, token: str) -> User | None:
        status = await self._ask(TOKEN_REVIEWS, {"token": token})
        if status.get("authenticated") is not True:
            return None
        user = status.get("user") or {}
        groups = tuple(str(group) for group in user.get("groups") or ())
        return User(
            str(user.get("username", "")), str(user.get("uid", "")), groups, dict(user.get("extra") or {})
        )

    async def _review_access(self, user: User, verb: str, path: str) -> bool:
        status = await self._ask(
            SUBJECT_ACCESS_REVIEWS,
            {
                "user": user.name,
                "uid": user.uid,
                "groups": list(user.groups),
                "extra": dict(user.extra),
                "nonResourceAttributes": {"verb": verb, "path": path},
            },
        )
        return status.get("allowed") is True

    async def _ask(self, resource: Any, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(self._seconds), self._turn:
                answer = await self._cluster.create(resource, {"metadata": {}, "spec": spec})
        except TimeoutError:
            raise CannotReview(f"the API server did not answer within {self._seconds:g} s") from None
        except KubeError as error:
            raise CannotReview(f"{resource.plural}: {error}") from None
        status = answer.get("status")
        return status if isinstance(status, Mapping) else {}


class _Kept(Generic[T]):
    """Answers by question, each for a while; one question is asked once at a time."""

    def __init__(self, limits: ReviewLimits) -> None:
        self._limits = limits
        self._answers: OrderedDict[str, tuple[float, T]] = OrderedDict()
        self._underway: dict[str, asyncio.Task[T]] = {}

    async def get(self, key: str, ask: Callable[[], Awaitable[T]]) -> T:
        found = self._answers.get(key)
        if found is not None and found[0] > monotonic():
            return found[1]
        underway = self._underway.get(key)
        if underway is None:
            underway = self._underway[key] = asyncio.ensure_future(ask())
            underway.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(underway)  # others may wait for the same

    def _keep(self, key: str, done: "asyncio.Task[T]") -> None:
        del self._underway[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._answers.pop(key, None)
        self._answers[key] = (monotonic() + self._limits.kept, done.result())
        while len(self._answers) > self._limits.remembered:
            self._answers.popitem(last=False)
