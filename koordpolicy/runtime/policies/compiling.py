"""Compiling a revision aside: in a thread of its own, so that what runs goes on deciding.

Before that the revision is tried in another process (`runtime/trial`), where there is one: what hangs or takes all
memory does so there.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Final

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.graph import Compilation, Compiler, RuleGraph
from koordpolicy.graph.layers import PackFinder
from koordpolicy.language.cel.meter import DEFAULT_BUDGET
from koordpolicy.runtime.collector import quiet_collector
from koordpolicy.runtime.policies.layers import compile_layers
from koordpolicy.runtime.policies.pack_cache import pack_remembering
from koordpolicy.runtime.policies.revisions import (
    CandidateRevision,
    Reason,
    RejectedRevision,
    Unfit,
    bundle_of,
    errors_of,
    summary_of,
)
from koordpolicy.runtime.trial.verdict import TrialRequest, TrialsLost, TrialVerdict
from koordpolicy.runtime.trial.wire import unpacked
from koordpolicy.source.revision import Revision

if TYPE_CHECKING:
    from koordpolicy.runtime.trial.client import Trials

LOG: Final = logging.getLogger(__name__)

Prepare = Callable[[RuleGraph], None]
"""What a component does with a graph before it decides, such as lowering its columns; raises `Unfit`."""
_Texts = tuple[Mapping[str, str], Mapping[str, str]]
"""A tree's texts by path, and those above it."""


class Scrutiny(Enum):
    """What is done to find out whether a revision is good, where no trial does it."""

    NONE = auto()
    """It is compiled: whoever gives it has checked and tested it."""
    CHECKS = auto()
    TESTS = auto()
    """It is checked, and passes the tests that it requires of itself."""


class BackgroundCompiler:
    """One compiler in one thread, which remembers from revision to revision what did not change."""

    def __init__(
        self,
        packs: PackFinder,
        now: Callable[[], int],
        *,
        prepare: Prepare | None = None,
        scrutiny: Scrutiny = Scrutiny.TESTS,
        quiet: bool = False,
        trials: "Trials | None" = None,
        max_cost: int = DEFAULT_BUDGET,
        kept: bool = False,
    ) -> None:
        """With `kept`, what compiling the built-in pack made is kept on disk from one start to the next."""
        self._new: Callable[[], Compiler] = (
            partial(pack_remembering, max_cost, checked=scrutiny is Scrutiny.NONE)
            if kept
            else partial(Compiler, packs, max_cost)
        )
        self._compiler = self._new()
        self._now = now
        self._prepare = prepare
        self._scrutiny = scrutiny
        self._trials = trials
        self._collector = quiet_collector if quiet else nullcontext
        self._last: tuple[_Texts, RuleGraph, Compilation] | None = None
        """Of the newest that was good: a start with the kept tree is followed by the same from the source."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="compile")

    async def compile(
        self, revision: Revision, asked: Iterable[str] = ()
    ) -> CandidateRevision | RejectedRevision:
        """The revision as a candidate, or why it is none. Never raises for anything that a revision holds.

        `asked` names decisions whose programs are made ready too, so that the first question is not the slow one.
        """
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._quietly, revision, tuple(asked)
        )

    def close(self) -> None:
        """Let the thread end when it has done what it is doing."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _quietly(self, revision: Revision, asked: Iterable[str]) -> CandidateRevision | RejectedRevision:
        with self._collector():
            return self._compile(revision, asked)

    def _compile(self, revision: Revision, asked: Iterable[str]) -> CandidateRevision | RejectedRevision:
        if revision.found.has_errors:
            return self._reject(revision, Reason.READ_FAILED, Compilation(None, Diagnostics(), (), {}))
        if not revision.files:
            message = "the tree holds no policies (*.yaml, *.yml); an empty tree is taken for an accident"
            nothing = Compilation(None, Diagnostics(), (), {})
            return self._reject(revision, Reason.NO_POLICIES, nothing, message)
        compilation = Compilation(None, Diagnostics(), (), {})
        try:
            if self._last is not None and self._last[0] == (revision.files, revision.above):
                _make_ready(self._last[1], asked)
                return _accept(revision, *self._last[1:])
            verdict = None
            if self._trials is not None:
                verdict = self._tried(self._trials, revision, asked)
                if verdict.reason is not None:
                    return self._refuse(revision, verdict)
                for made in unpacked(verdict.learned):
                    self._compiler.learn(made)
                verdict = replace(verdict, learned=b"")  # megabytes, of which no more is needed
            tests = self._scrutiny is Scrutiny.TESTS and self._trials is None
            layers = compile_layers(
                self._compiler,
                revision.files,
                revision.above,
                checked=self._scrutiny is Scrutiny.NONE or verdict is not None,
                chosen=_every_case if tests else None,
            )
            compilation, reason, graph = layers.compilation, layers.reason, layers.compilation.graph
            if verdict is not None and graph is not None:
                compilation.found.extend(verdict.found)
                if graph.digest == verdict.digest:
                    graph.adopt(verdict.programs)
            if graph is not None:
                _make_ready(graph, asked)
                if self._prepare is not None:
                    self._prepare(graph)
        except Unfit as error:
            return self._reject(revision, Reason.UNFIT, compilation, str(error))
        except Exception as error:
            LOG.exception("the compiler failed on revision %s", revision.name)
            self._compiler = self._new()  # what it remembered may be half of something
            message = f"the compiler failed ({type(error).__name__}: {error}); please report this"
            return self._reject(
                revision, Reason.INTERNAL_ERROR, Compilation(None, Diagnostics(), (), {}), message
            )
        if graph is None:
            return self._reject(revision, reason, compilation)
        self._last = (revision.files, revision.above), graph, compilation
        return _accept(revision, graph, compilation)

    def _tried(self, trials: "Trials", revision: Revision, asked: Iterable[str]) -> TrialVerdict:
        try:
            return trials.attempt(
                TrialRequest(revision.files, tuple(asked), self._scrutiny is Scrutiny.TESTS, revision.above)
            )
        except TrialsLost as lost:
            message = (
                f"the process that tries revisions is gone ({lost}); restart this one to take new revisions"
            )
            return TrialVerdict(Reason.INTERNAL_ERROR, message)

    def _refuse(self, revision: Revision, verdict: TrialVerdict) -> RejectedRevision:
        """The revision rejected as its trial says."""
        assert verdict.reason is not None
        if verdict.trace:
            LOG.error("the compiler failed on revision %s\n%s", revision.name, verdict.trace)
        found = Diagnostics()
        found.extend(revision.found)
        found.extend(verdict.found)
        sources = {**verdict.packs, **revision.files, **revision.above}
        return RejectedRevision(
            revision, verdict.reason, verdict.message, found, sources, self._now(), verdict.bundle
        )

    def _reject(
        self, revision: Revision, reason: Reason, compilation: Compilation, message: str = ""
    ) -> RejectedRevision:
        found = Diagnostics()
        found.extend(revision.found)
        found.extend(compilation.found)
        sources = compilation.sources or dict(revision.files)
        message = message or summary_of(errors_of(found))
        return RejectedRevision(
            revision, reason, message, found, sources, self._now(), bundle_of(compilation)
        )


def _accept(revision: Revision, graph: RuleGraph, compilation: Compilation) -> CandidateRevision:
    found = Diagnostics()
    found.extend(revision.found)
    found.extend(compilation.found)
    return CandidateRevision(graph, revision, compilation.sources, found, bundle_of(compilation))


def _every_case(_suite: str, _case: str) -> bool:
    return True


def _make_ready(graph: RuleGraph, asked: Iterable[str]) -> None:
    for name in asked:
        with suppress(LookupError):  # a decision that the new revision has no more
            graph.program(name)
