"""What the page asks, as JSON. What changes nothing is GET; what steers the clock or a rollout, or has us compile, is POST and guarded."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from koordpolicy.console.frames import COLUMNS
from koordpolicy.console.guard import Guard
from koordpolicy.console.playground import Playground
from koordpolicy.console.policies import PolicyView
from koordpolicy.console.questions import Questions
from koordpolicy.console.rollout_hand import RolloutHand
from koordpolicy.console.static_files import static_routes
from koordpolicy.console.stories import pod_name, story_of
from koordpolicy.console.worlds.world import CannotAnswer, PodSpan, World
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.runtime.http.authentication import Protection
from koordpolicy.runtime.http.json_bodies import JsonProblem, read_json
from koordpolicy.runtime.http.routing import JSON, Handler, Request, Response, Route

_BYTES: Final = "application/octet-stream"
_FOUND: Final = 40
"""Pods and nodes that a search gives at most."""
_MOST_WAITING: Final = 4
"""Questions about edited policies at a time; each may take seconds."""

_T = TypeVar("_T")

Answer = Callable[[Request], Awaitable[Mapping[str, Any] | list[Any]]]


class ConsoleApi:
    """The routes of the console. `ask` makes who answers questions by a graph."""

    def __init__(
        self,
        world: World,
        policies: PolicyView,
        playground: Playground,
        ask: Callable[[RuleGraph], Questions],
        guard: Guard,
        revisions: Callable[[], list[dict[str, Any]]] = list,
        hand: RolloutHand | None = None,
    ) -> None:
        self.world = world
        self.policies = policies
        self.playground = playground
        self._ask = ask
        self._questions = ask(policies.graph)
        self._guard = guard
        self._revisions = revisions
        self._hand = hand
        self._thinking = asyncio.Lock()
        self._compiling = asyncio.Lock()
        """Of its own: what somebody edits may take seconds, and others read on meanwhile."""
        self._waiting = 0

    def answer_by(self, policies: PolicyView, playground: Playground) -> None:
        """Answer by other policies from now on; what is being thought about is answered by those before."""
        self.policies, self.playground = policies, playground
        self._questions = self._ask(policies.graph)

    def routes(self) -> list[Route]:
        """All of them, the page's files included."""
        asked: tuple[tuple[str, Answer], ...] = (
            ("world", self._world),
            ("state", self._state),
            ("search", self._search),
            ("node", self._node),
            ("pod", self._pod),
            ("pods", self._pods),
            ("answer", self._answer),
            ("gangs", self._gangs),
            ("gang", self._gang),
            ("quotas", self._quotas),
            ("quota", self._quota),
            ("decisions", self._decisions),
            ("graph", self._graph),
            ("source", self._source),
            ("files", self._files),
            ("revisions", self._all_revisions),
        )
        told: tuple[tuple[str, Answer], ...] = (
            ("clock", self._steer),
            ("check", self._check),
            ("complete", self._complete),
            ("try", self._try),
        )
        if self._hand is not None:
            told = (*told, ("rollout", self._rollout(self._hand)))
        routes = [
            *static_routes(),
            Route("GET", "/api/frames", self._frames, Protection.READ),
            *(Route("GET", f"/api/{name}", _json(answer), Protection.READ) for name, answer in asked),
            *(Route("POST", f"/api/{name}", _json(answer), Protection.WRITE) for name, answer in told),
        ]
        return [
            Route(one.method, one.path, self._guard.before(one.handler), one.protection) for one in routes
        ]

    # --- the cluster over time ----------------------------------------------------------------------

    async def _world(self, _: Request) -> Mapping[str, Any]:
        world = self.world
        return {
            "kind": world.kind,
            "title": world.title,
            "columns": list(COLUMNS),
            "nodes": [node.plain() for node in world.nodes()],
            "revision": self.policies.name,
            "digest": self.policies.graph.digest,
            "steersRollouts": self._hand is not None,
        }

    async def _state(self, request: Request) -> Mapping[str, Any]:
        frames = self.world.frames
        names = self.world.names()
        return {
            "clock": self.world.clock(),
            "digest": self.policies.graph.digest,
            "generation": frames.generation,
            "frames": len(frames.kept),
            "series": frames.series(_number(request, "after")),
            "classes": list(names.classes),
            "bands": list(names.bands),
            "revisions": list(names.revisions),
        }

    def _frames(self, request: Request) -> Response:
        try:
            first, last = _number(request, "from"), _number(request, "to")
        except CannotAnswer as error:
            return Response.text(f"{error}\n", 400)
        return Response(200, self.world.frames.rows(first, last), _BYTES)

    async def _steer(self, request: Request) -> Mapping[str, Any]:
        self.world.steer(_body(request))
        return self.world.clock()

    # --- one thing of it ----------------------------------------------------------------------------

    async def _search(self, request: Request) -> list[Any]:
        text = request.query.get("q", "").lower()
        nodes = [node.name for node in self.world.nodes() if text in node.name.lower()][:_FOUND]
        pods = {span.pod: span for span in self.world.spans() if text in span.pod.lower()}
        decisions = [str(key) for key in self.policies.graph.decisions if text in str(key).lower()][:_FOUND]
        return [
            *({"what": "node", "name": name} for name in nodes),
            *({"what": "pod", "name": name, "on": pods[name].node} for name in list(pods)[:_FOUND]),
            *({"what": "decision", "name": name} for name in decisions),
        ]

    async def _node(self, request: Request) -> Mapping[str, Any]:
        name = _named(request)
        shown = next((node for node in self.world.nodes() if node.name == name), None)
        if shown is None:
            raise CannotAnswer(f"there is no node `{name}`, of {len(self.world.nodes()):,}")
        frames = self.world.frames.kept
        at = min(_number(request, "frame", len(frames) - 1), len(frames) - 1)
        time = frames[at].time if frames else 0
        pods = [span for span in self.world.spans() if span.node == name and span.at(time)]
        return {
            **shown.plain(),
            "at": time / 1e9,
            "pods": [span.plain() for span in sorted(pods, key=_by_use)],
            **(await self._room(name) if request.query.get("room") else {}),
        }

    async def _room(self, name: str) -> Mapping[str, Any]:
        picture = await self.world.picture()
        return await self._think(lambda: self._questions.node(picture, name))

    async def _pods(self, request: Request) -> Mapping[str, Any]:
        """The pods that have no node, as they are now."""
        picture = await self.world.picture()
        waiting = [
            pod_name(pod)
            for pod in picture.pods
            if not (pod.get("spec") or {}).get("nodeName")
            and (pod.get("status") or {}).get("phase") in (None, "Pending")
        ]
        return {"waiting": waiting[:1000], "count": len(waiting), "at": picture.taken / 1e9}

    async def _pod(self, request: Request) -> Mapping[str, Any]:
        name, world = _named(request), self.world
        name = name if "/" in name else f"default/{name}"
        picture = await world.picture()
        beside = await world.beside(name, picture)
        spans, submitted = world.spans(), world.submitted(name)
        return await self._think(lambda: story_of(self._questions, picture, name, spans, submitted, beside))

    async def _answer(self, request: Request) -> Mapping[str, Any]:
        """A decision on one node or pod."""
        name, decision = _named(request), request.query.get("decision", "")
        picture = await self.world.picture()
        return await self._think(lambda: self._questions.decision(picture, decision, name))

    async def _gangs(self, _: Request) -> Mapping[str, Any]:
        picture = await self.world.picture()
        return await self._think(lambda: self._questions.gangs(picture))

    async def _gang(self, request: Request) -> Mapping[str, Any]:
        name, picture = _named(request), await self.world.picture()
        return await self._think(lambda: self._questions.gang(picture, name))

    async def _quotas(self, _: Request) -> list[Any]:
        picture = await self.world.picture()
        return await self._think(lambda: self._questions.quotas(picture))

    async def _quota(self, request: Request) -> Mapping[str, Any]:
        name, picture = _named(request), await self.world.picture()
        return await self._think(lambda: self._questions.quota(picture, name))

    # --- policies -----------------------------------------------------------------------------------

    async def _decisions(self, _: Request) -> list[Any]:
        return self.policies.decisions()

    async def _graph(self, request: Request) -> Mapping[str, Any]:
        name, overview = _named(request), bool(request.query.get("overview"))
        return await self._think(lambda: self.policies.drawn(name, overview=overview))

    async def _source(self, request: Request) -> Mapping[str, Any]:
        return self.policies.source(request.query.get("file", ""))

    async def _files(self, _: Request) -> Mapping[str, Any]:
        return {
            "own": self.playground.files,
            "kinds": sorted({key.kind for key in self.policies.graph.decisions}),
        }

    async def _all_revisions(self, _: Request) -> list[Any]:
        return self._revisions()

    @staticmethod
    def _rollout(hand: RolloutHand) -> Answer:
        async def ask(request: Request) -> Mapping[str, Any]:
            body = _body(request)
            name, action = body.get("name"), body.get("action")
            if not isinstance(name, str) or not name or not isinstance(action, str):
                raise CannotAnswer("`name` is a PolicyRevision's, `action` what its rollout is asked to do")
            return {"said": await hand.ask(name, action)}

        return ask

    async def _check(self, request: Request) -> Mapping[str, Any]:
        edited = _texts(_body(request))
        return await self._compile(lambda: self.playground.check(edited))

    async def _complete(self, request: Request) -> Mapping[str, Any]:
        body = _body(request)
        file, text, offset = body.get("file"), body.get("text"), body.get("offset")
        if not isinstance(file, str) or not isinstance(text, str) or type(offset) is not int:
            raise CannotAnswer("`file` and `text` are strings, `offset` is a number")
        return await self._compile(lambda: self.playground.complete(file, text, offset))

    async def _try(self, request: Request) -> Mapping[str, Any]:
        body = _body(request)
        edited, kind, name = _texts(body), str(body.get("kind", "")), str(body.get("name", ""))
        picture = await self.world.picture()
        await self._compile(lambda: self.playground.check(edited))
        return await self._think(lambda: self.playground.decisions(edited, picture, self._ask, kind, name))

    async def _compile(self, question: Callable[[], _T]) -> _T:
        """An answer about edited policies, in a thread, one at a time. Raises CannotAnswer where many wait for theirs."""
        if self._waiting >= _MOST_WAITING:
            raise CannotAnswer("others have their policies compiled: ask again")
        self._waiting += 1
        try:
            async with self._compiling:
                return await asyncio.to_thread(question)
        finally:
            self._waiting -= 1

    async def _think(self, question: Callable[[], _T]) -> _T:
        """Answer in a thread, one at a time: graphs and compilers are not for two."""
        async with self._thinking:
            return await asyncio.to_thread(question)


def _json(answer: Answer) -> Handler:
    async def handler(request: Request) -> Response:
        try:
            told = await answer(request)
        except CannotAnswer as error:
            return Response(404, json_text({"error": str(error)}).encode(), JSON)
        return Response(200, json_text(told).encode(), JSON)

    return handler


def _body(request: Request) -> Mapping[str, Any]:
    try:
        body = read_json(request.body)
    except JsonProblem as error:
        raise CannotAnswer(str(error)) from None
    if not isinstance(body, Mapping):
        raise CannotAnswer("a body is a JSON object")
    return body


def _texts(body: Mapping[str, Any]) -> dict[str, str]:
    files = body.get("files")
    if not isinstance(files, Mapping) or not all(isinstance(text, str) for text in files.values()):
        raise CannotAnswer("`files` maps paths to texts")
    return {str(file): text for file, text in files.items()}


def _named(request: Request) -> str:
    name = request.query.get("name", "")
    if not name:
        raise CannotAnswer("say which one by `name`")
    return name


def _number(request: Request, name: str, otherwise: int = 0) -> int:
    said = request.query.get(name, "")
    if not said:
        return otherwise
    if not (said.isascii() and said.isdecimal() and len(said) < 10):
        raise CannotAnswer(f"`{name}` is a number from 0")
    return int(said)


def _by_use(span: PodSpan) -> tuple[int, str]:
    return (-span.cpu, span.pod)
