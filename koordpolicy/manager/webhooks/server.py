"""The webhooks behind HTTPS: AdmissionReviews in, answers out. Every replica serves; no answer waits for the cluster.

What is no review, or nothing that a webhook decides, is told by the status of the response, and so is a mistake of ours: the API
server then does as the failure policy says. An object that cannot be read is refused, and so is what a policy that may
not be passed over cannot decide.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol

from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest, Handler
from koordpolicy.kube.errors import KubeError
from koordpolicy.language.cel.errors import CelError
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.profiles import ColocationProfileError
from koordpolicy.manager.webhooks.review import Review, read_review, write_review
from koordpolicy.manager.webhooks.webhook import Webhook, WebhookContext
from koordpolicy.model.reading import ObjectError
from koordpolicy.model.strategic_merge import PatchError
from koordpolicy.model.time import NANOSECONDS, parse_duration
from koordpolicy.runtime.clock import monotonic
from koordpolicy.runtime.http import JSON, Request, Response, Route
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.json_bodies import read_json
from koordpolicy.runtime.http.limits import ServerLimits
from koordpolicy.runtime.metrics import Metrics

LOG: Final = logging.getLogger(__name__)

LIMITS: Final = ServerLimits(body=16_000_000, bodies=64_000_000, idle=300.0, reread=1.0)
"""A review of an update holds the object twice, each of up to 3 MB, which escapes make longer."""
_SHORT: Final = 200_000
"""Bytes of a body above which it is read in a thread."""
_LONGEST: Final = 30.0
_MARGIN: Final = 0.1
"""Of the time that an API server waits, this part is left for the way."""


class ReviewObserver(Protocol):
    """Who is told how reviews went."""

    def failed(self, webhook: Webhook, request: AdmissionRequest, error: Exception) -> None:
        """A request was refused because a policy could not decide it, or because of a mistake of ours."""
        ...


class WebhookServer:
    """The routes of all webhooks. Nothing is answered while `waiting` gives a reason; `audit` goes into each answer."""

    def __init__(
        self,
        context: WebhookContext,
        metrics: Metrics,
        observer: ReviewObserver,
        *,
        waiting: Callable[[], str],
        audit: Callable[[], Mapping[str, str]],
        protection: Protection = Protection.OPEN,
        webhooks: tuple[Webhook, ...] = WEBHOOKS,
    ) -> None:
        self._metrics = metrics
        self._observer = observer
        self._waiting = waiting
        self._audit = audit
        self._protection = protection
        self._counting: dict[tuple[str, str], tuple[Callable[[], None], Callable[[float], None]]] = {}
        """What counts reviews, by webhook and result."""
        self._handlers = tuple((one, one.handler(context)) for one in webhooks)

    def routes(self) -> tuple[Route, ...]:
        """What is served."""
        return tuple(self._route(webhook, handler) for webhook, handler in self._handlers)

    def _route(self, webhook: Webhook, handler: Handler) -> Route:
        def answer(request: Request) -> Response | Awaitable[Response]:
            began = monotonic()
            if why := self._waiting():
                later = Response(503, f"{why}\n".encode(), headers=_LATER, last=True)
                return self._counted(webhook, began, "not_ready", later)
            if len(request.body) >= _SHORT:
                return self._read_aside(webhook, handler, request, began)
            try:
                review = read_review(read_json(request.body), webhook)
            except ValueError as problem:
                return self._malformed(webhook, began, problem)
            return self._decided(webhook, handler, review, request, began)

        return Route("POST", webhook.path, answer, self._protection)

    async def _read_aside(
        self, webhook: Webhook, handler: Handler, request: Request, began: float
    ) -> Response:
        try:
            review = read_review(await asyncio.to_thread(read_json, request.body), webhook)
        except ValueError as problem:
            return self._malformed(webhook, began, problem)
        answer = self._decided(webhook, handler, review, request, began)
        return answer if isinstance(answer, Response) else await answer

    def _decided(
        self, webhook: Webhook, handler: Handler, review: Review, request: Request, began: float
    ) -> Response | Awaitable[Response]:
        """The answer, at once where the handler waits for nothing."""
        try:
            answer = handler(review.request)
            if answer is None or isinstance(answer, AdmissionAnswer):
                return self._told(webhook, began, review, answer)
        except Exception as error:  # noqa: BLE001  # each has its answer
            return self._failed(webhook, began, review, error)
        return self._awaited(webhook, review, answer, _seconds(request.query.get("timeout", "")), began)

    async def _awaited(
        self,
        webhook: Webhook,
        review: Review,
        answer: Awaitable[AdmissionAnswer | None],
        seconds: float,
        began: float,
    ) -> Response:
        try:
            async with asyncio.timeout(seconds):
                answered = await answer
            return self._told(webhook, began, review, answered)
        except Exception as error:  # noqa: BLE001  # each has its answer
            return self._failed(webhook, began, review, error)

    def _told(
        self, webhook: Webhook, began: float, review: Review, answer: AdmissionAnswer | None
    ) -> Response:
        answer = answer or _ALLOWED
        result = "denied" if not answer.allowed else "allowed" if answer.object is None else "changed"
        text = write_review(review, answer, self._audit())
        return self._counted(webhook, began, result, Response(200, text, JSON))

    def _failed(self, webhook: Webhook, began: float, review: Review, error: Exception) -> Response:
        """What is answered where nothing was decided."""
        match error:
            case TimeoutError():
                late = Response.text("not decided within the time that the review gives\n", 504)
                return self._counted(webhook, began, "late", late)
            case ObjectError():
                answer = AdmissionAnswer(False, str(error), code=400)
            case CelError() | ColocationProfileError() | PatchError():
                self._observer.failed(webhook, review.request, error)
                answer = AdmissionAnswer(False, f"policies cannot decide this: {error}", code=500)
            case KubeError():
                self._observer.failed(webhook, review.request, error)
                answer = AdmissionAnswer(False, str(error), code=error.code)
            case _:
                LOG.error("the webhook %s failed", webhook.name, exc_info=error)
                self._metrics.add("koordpolicy_internal_errors_total", place="webhook")
                text = f"internal error, please report: {type(error).__name__}: {error}"
                return self._counted(webhook, began, "error", Response.text(f"{text}\n", 500))
        return self._told(webhook, began, review, answer)

    def _malformed(self, webhook: Webhook, began: float, problem: ValueError) -> Response:
        """The answer to what is no review: JsonProblem and ObjectError say why."""
        return self._counted(webhook, began, "malformed", Response.text(f"{problem}\n", 400))

    def _counted(self, webhook: Webhook, began: float, result: str, response: Response) -> Response:
        known = self._counting.get((webhook.name, result))
        if known is None:
            known = self._counting[webhook.name, result] = (
                self._metrics.adder(
                    "koordpolicy_webhook_requests_total", webhook=webhook.name, result=result
                ),
                self._metrics.observer("koordpolicy_webhook_duration_seconds", webhook=webhook.name),
            )
        count, observe = known
        count()
        observe(monotonic() - began)
        return response


_ALLOWED: Final = AdmissionAnswer()
_LATER: Final[Mapping[str, str]] = MappingProxyType({"Retry-After": "1"})
"""With it API servers ask again within the webhook's timeout, over another connection and so, maybe, another replica."""


@lru_cache(maxsize=64)
def _seconds(said: str) -> float:
    """How long a decision may take, of the duration that the API server waits for it."""
    try:
        given = parse_duration(said) / NANOSECONDS if said else _LONGEST
    except ValueError:
        given = _LONGEST
    return min(max(given, 0.0), _LONGEST) * (1 - _MARGIN)
