"""What is tried of a revision: everything that a live process would do with it, in the process made for it."""

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from koordpolicy.graph import Compilation, Compiler, Layer, RuleGraph
from koordpolicy.graph.samples import fill
from koordpolicy.graph.testing import with_tests
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.portable import Portable, portable
from koordpolicy.runtime.packs import OWN
from koordpolicy.runtime.revisions import Reason, Unfit, bundle_of, errors_of, summary_of
from koordpolicy.runtime.trial.limits import TrialLimits
from koordpolicy.runtime.trial.verdict import Rehearse, Request, Verdict

Progress = Callable[[str], None]
"""Told what is done next, in a phrase that goes on from "while"."""

_LONGEST_TRACE: Final = 10_000


def attempt(
    compiler: Compiler, request: Request, limits: TrialLimits, rehearse: Rehearse | None, progress: Progress
) -> Verdict:
    """Compile, test and evaluate a revision. Raises nothing but `MemoryError`, which is for who set the limit."""
    try:
        verdict = _attempt(compiler, request, limits, rehearse, progress)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the end of this revision alone
        message = f"the compiler failed ({type(error).__name__}: {error}); please report this"
        trace = traceback.format_exc()[-_LONGEST_TRACE:]
        verdict = Verdict(Reason.INTERNAL_ERROR, message, trace=trace)
    return replace(verdict, cpu=time.process_time())


def _attempt(
    compiler: Compiler, request: Request, limits: TrialLimits, rehearse: Rehearse | None, progress: Progress
) -> Verdict:
    compilation = compiler.compile(Layer(OWN, request.files), progress)
    if compilation.graph is None:
        return _refused(Reason.COMPILE_FAILED, compilation, request)
    if request.tests:
        progress("its tests ran")
        compilation = with_tests(compilation, _telling(progress))
    graph = compilation.graph
    if graph is None:
        return _refused(Reason.TESTS_FAILED, compilation, request)
    names = tuple(dict.fromkeys((*_own_decisions(graph), *request.asked)))
    for name in names:
        progress(f"`{name}` was evaluated on an example")
        if (seconds := _evaluated(graph, name)) > limits.evaluation:
            message = f"`{name}` took {seconds:.1f} s on an example, more than {limits.evaluation:g} s"
            return Verdict(Reason.LIMIT_EXCEEDED, message, bundle=bundle_of(compilation))
    if rehearse is not None:
        progress("the component tried it on an example")
        try:
            rehearse(graph)
        except Unfit as error:
            return Verdict(Reason.UNFIT, str(error), bundle=bundle_of(compilation))
    programs = {name: made for name in names if (made := _portable(graph, name)) is not None}
    return Verdict(
        found=compilation.found, bundle=bundle_of(compilation), digest=graph.digest, programs=programs
    )


def _telling(progress: Progress) -> Callable[[str, str], bool]:
    def chosen(suite: str, case: str) -> bool:
        progress(f"the test `{case}` of {suite} ran")
        return True

    return chosen


def _own_decisions(graph: RuleGraph) -> Iterator[str]:
    """The decisions in which the bundle itself has a say: the pack's are as they were shipped."""
    for key, decision in graph.decisions.items():
        if any(rule.layer == OWN for rule in decision.rules):
            yield str(key)


def _evaluated(graph: RuleGraph, name: str) -> float:
    """Seconds of CPU time that a decision takes at most, on an empty input and on one that has all facts."""
    try:
        program = graph.program(name)
    except LookupError:  # asked of the revision before, and gone from this one
        return 0.0
    longest = 0.0
    for records in ({}, _examples(program.facts)):
        began = time.process_time()
        with suppress(CelError):  # what an expression cannot say of an example is no fault of the revision
            program.call(*(records.get(root, {}) for root in program.roots))
        longest = max(longest, time.process_time() - began)
    return longest


def _portable(graph: RuleGraph, name: str) -> Portable | None:
    return portable(graph.program(name)) if name in graph.asked else None


def _examples(facts: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    """A record for each root, with all facts of it that are read; a root without facts below it stands for itself."""
    found: dict[str, Any] = {}
    for root, path in sorted(facts):
        if path:
            found.setdefault(root, {})[path] = fill(root, path)
        else:
            found[root] = fill(root, path)
    return found


def _refused(reason: Reason, compilation: Compilation, request: Request) -> Verdict:
    packs = {path: text for path, text in compilation.sources.items() if path not in request.files}
    return Verdict(
        reason, summary_of(errors_of(compilation.found)), compilation.found, packs, bundle_of(compilation)
    )
