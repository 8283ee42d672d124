"""Policies that are tried and not live: what the compiler finds in an edited file, and what changes by it for one node or pod.

The revision that is live is compiled once more with the edited texts in place of its own, so that findings are those of `check`.
That is tried in a process of its own first, with limits of CPU time and memory: whoever edits shall not hold up who looks.
Nothing is written anywhere.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from koordpolicy.console.questions import Questions
from koordpolicy.console.worlds.world import CannotAnswer
from koordpolicy.diagnostics import Diagnostic, Diagnostics
from koordpolicy.graph import Compilation, Compiler, Layer, RuleGraph
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.language_server.completion import Offer, complete
from koordpolicy.runtime.clock import processor_ns
from koordpolicy.runtime.policies.packs import OWN
from koordpolicy.runtime.policies.revisions import Reason
from koordpolicy.runtime.trial.client import Trials
from koordpolicy.runtime.trial.limits import TrialLimits
from koordpolicy.runtime.trial.verdict import TrialRequest, TrialsLost
from koordpolicy.runtime.trial.wire import unpacked

_MOST_FILES: Final = 200
_MOST_CHARACTERS: Final = 200_000
_MOST_FINDINGS: Final = 100
_MOST_COMPLETED: Final = 40_000
"""Characters of a file in which something is completed: it is read here, several times over, and not in the process of trials."""
_PATIENCE: Final = 2_000_000_000
"""Nanoseconds of CPU time after which nothing is offered: who types has typed on."""
_MOST_OFFERS: Final = 400
_MOST_DECISIONS: Final = 400

LIMITS: Final = TrialLimits(cpu=15.0, by_flags=False)
"""What compiling edited policies may take: the built-in pack with a large bundle takes a few seconds."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """What became of edited texts: a graph, or findings, or a `problem` that is no place's."""

    graph: RuleGraph | None
    findings: list[dict[str, Any]]
    problem: str = ""


class Playground:
    """Compiles edited texts, remembering what did not change. `files` are those of the live revision by path.

    `trials` is where they are compiled first; None where a system cannot fork.
    """

    def __init__(
        self, files: Mapping[str, str], live: RuleGraph, compiler: Compiler, trials: Trials | None
    ) -> None:
        self.files = dict(files)
        self._live = live
        self._compiler = compiler
        self._trials = trials
        self._lock = Lock()
        self._last: tuple[Mapping[str, str], _Tried] | None = None
        self._good: Compilation | None = None
        """The last one that compiled: what is being typed mostly does not."""

    def check(self, edited: Mapping[str, str]) -> dict[str, Any]:
        """What the compiler says of the revision with edited files: findings in their order, and which decisions differ."""
        tried = self._compiled(edited)
        graph = tried.graph
        return {
            "findings": tried.findings,
            "problem": tried.problem,
            "compiles": graph is not None,
            "digest": None if graph is None else graph.digest,
            "same": graph is not None and graph.digest == self._live.digest,
        }

    def decisions(
        self,
        edited: Mapping[str, str],
        picture: Snapshot,
        ask: Callable[[RuleGraph], Questions],
        kind: str,
        name: str,
    ) -> dict[str, Any]:
        """The decisions on a node or pod by the edited policies, beside those by the live ones.

        `kind` is a kind of policy (`CPUSuppress`), or a target of it. Raises `CannotAnswer`.
        """
        tried = self._compiled(edited)
        graph = tried.graph
        if graph is None:
            raise CannotAnswer(tried.problem or "these policies do not compile yet")
        keys = [
            str(key)
            for key in graph.decisions
            if kind in (key.kind, key.target) and ".parameters" not in key.field
        ]
        if not keys:
            raise CannotAnswer(f"no decision is about `{kind}`")
        before, after = ask(self._live), ask(graph)
        rows = [
            {
                "decision": key,
                "before": _asked(before, picture, key, name),
                "after": _asked(after, picture, key, name),
            }
            for key in keys[:_MOST_DECISIONS]
        ]
        return {"name": name, "kind": kind, "rows": rows}

    def complete(self, file: str, text: str, offset: int) -> dict[str, Any]:
        """What could stand at an offset of an edited file, as the language server offers it: what is inserted replaces `from` to `to`.

        Offsets count characters (code points) from 0. Raises `CannotAnswer`.
        """
        if len(text) > _MOST_COMPLETED:
            raise CannotAnswer(f"nothing is completed in files of more than {_MOST_COMPLETED:,} characters")
        if not 0 <= offset <= len(text):
            raise CannotAnswer(f"`offset` is a number from 0 to {len(text):,}, the characters of `text`")
        with self._lock:
            if self._good is None:
                self._good = self._compiler.compile(Layer(OWN, self.files), checked=True)
            end = processor_ns() + _PATIENCE
            graph = self._good.graph
            found = complete(file, text, offset, self._good, graph, lambda: processor_ns() >= end)
        if found is None:
            return {"from": offset, "to": offset, "offers": []}
        return {
            "from": found.start,
            "to": found.end,
            "offers": [_offer(one) for one in found.offers[:_MOST_OFFERS]],
        }

    def _compiled(self, edited: Mapping[str, str]) -> _Tried:
        if len(edited) > _MOST_FILES or sum(map(len, edited.values())) > _MOST_CHARACTERS:
            raise CannotAnswer(
                f"at most {_MOST_FILES} files and {_MOST_CHARACTERS:,} characters are tried at a time"
            )
        with self._lock:  # a compiler is not for two threads
            return self._once(edited)

    def _once(self, edited: Mapping[str, str]) -> _Tried:
        if self._last is not None and self._last[0] == edited:
            return self._last[1]
        unknown = [file for file in edited if file not in self.files and not file.endswith((".yaml", ".yml"))]
        if unknown:
            raise CannotAnswer(f"`{unknown[0]}` is no YAML file")
        tried = self._aside({**self.files, **edited})
        self._last = (dict(edited), tried)
        return tried

    def _aside(self, files: Mapping[str, str]) -> _Tried:
        """Compile in the process of trials, and here only what was good there: all but the checks is learned from it."""
        if self._trials is None:
            compilation = self._kept(self._compiler.compile(Layer(OWN, files)))
            return _Tried(compilation.graph, _findings(compilation.found))
        try:
            verdict = self._trials.attempt(TrialRequest(files, tests=False))
        except TrialsLost as lost:
            raise CannotAnswer(
                f"the process that tries policies is gone ({lost}): start the console again"
            ) from None
        found = _findings(verdict.found)
        if verdict.reason is Reason.COMPILE_FAILED:
            return _Tried(None, found)
        if verdict.reason is not None:
            return _Tried(None, found, f"not tried to its end: {verdict.message}")
        for made in unpacked(verdict.learned):
            self._compiler.learn(made)
        return _Tried(self._kept(self._compiler.compile(Layer(OWN, files), checked=True)).graph, found)

    def _kept(self, compilation: Compilation) -> Compilation:
        if compilation.graph is not None:
            self._good = compilation
        return compilation


def _asked(questions: Questions, picture: Snapshot, decision: str, name: str) -> dict[str, Any]:
    try:
        return questions.decision(picture, decision, name)
    except CannotAnswer as error:
        return {"decision": decision, "value": None, "error": str(error), "rules": [], "facts": []}


def _offer(one: Offer) -> dict[str, Any]:
    return {
        "name": one.name,
        "sort": one.sort.name.lower(),
        "detail": one.detail,
        "page": one.page,
        "text": one.inserted,
    }


def _findings(found: Diagnostics) -> list[dict[str, Any]]:
    return [_finding(one) for one in sorted(found, key=lambda one: one.order)[:_MOST_FINDINGS]]


def _finding(one: Diagnostic) -> dict[str, Any]:
    return {
        "code": one.code,
        "severity": str(one.severity),
        "message": one.message,
        "help": one.help,
        "file": one.span.file,
        "from": [one.span.start.line, one.span.start.column],
        "to": [one.span.end.line, one.span.end.column],
        "notes": [note.message for note in one.notes],
    }
