"""Policies that are tried and not live: what the compiler finds in an edited file, and what changes by it for one node or pod.

The revision that is live is compiled once more with the edited texts in place of its own, so that findings are those of `check`.
Nothing is written anywhere.
"""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final

from koordpolicy.console.questions import Questions
from koordpolicy.console.worlds.world import CannotAnswer
from koordpolicy.diagnostics import Diagnostic
from koordpolicy.graph import Compiler, Layer, RuleGraph
from koordpolicy.kube.snapshot import Snapshot
from koordpolicy.runtime.policies.packs import OWN

_MOST_FILES: Final = 200
_MOST_CHARACTERS: Final = 200_000
_MOST_FINDINGS: Final = 100
_MOST_DECISIONS: Final = 400


class Playground:
    """Compiles edited texts, remembering what did not change. `files` are those of the live revision by path."""

    def __init__(self, files: Mapping[str, str], live: RuleGraph, compiler: Compiler) -> None:
        self.files = dict(files)
        self._live = live
        self._compiler = compiler
        self._lock = Lock()
        self._last: tuple[Mapping[str, str], RuleGraph | None, list[dict[str, Any]]] | None = None

    def check(self, edited: Mapping[str, str]) -> dict[str, Any]:
        """What the compiler says of the revision with edited files: findings in their order, and which decisions differ."""
        graph, found = self._compiled(edited)
        return {
            "findings": found,
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
        graph, _ = self._compiled(edited)
        if graph is None:
            raise CannotAnswer("these policies do not compile yet")
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

    def _compiled(self, edited: Mapping[str, str]) -> tuple[RuleGraph | None, list[dict[str, Any]]]:
        if len(edited) > _MOST_FILES or sum(map(len, edited.values())) > _MOST_CHARACTERS:
            raise CannotAnswer(
                f"at most {_MOST_FILES} files and {_MOST_CHARACTERS:,} characters are tried at a time"
            )
        with self._lock:  # a compiler is not for two threads
            return self._once(edited)

    def _once(self, edited: Mapping[str, str]) -> tuple[RuleGraph | None, list[dict[str, Any]]]:
        if self._last is not None and self._last[0] == edited:
            return self._last[1], self._last[2]
        unknown = [file for file in edited if file not in self.files and not file.endswith((".yaml", ".yml"))]
        if unknown:
            raise CannotAnswer(f"`{unknown[0]}` is no YAML file")
        compilation = self._compiler.compile(Layer(OWN, {**self.files, **edited}))
        found = [
            _finding(one) for one in sorted(compilation.found, key=lambda one: one.order)[:_MOST_FINDINGS]
        ]
        self._last = (dict(edited), compilation.graph, found)
        return compilation.graph, found


def _asked(questions: Questions, picture: Snapshot, decision: str, name: str) -> dict[str, Any]:
    try:
        return questions.decision(picture, decision, name)
    except CannotAnswer as error:
        return {"decision": decision, "value": None, "error": str(error), "rules": [], "facts": []}


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
