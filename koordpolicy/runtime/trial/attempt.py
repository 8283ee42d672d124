"""What is tried of a revision: everything that a live process would do with it, in the process made for it."""

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from koordpolicy.graph import Compilation, Compiler, RuleGraph
from koordpolicy.graph.samples import fill
from koordpolicy.graph.state import Progress
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.lower.portable import portable
from koordpolicy.language.cel.values import Timestamp
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.policies.layers import compile_layers
from koordpolicy.runtime.policies.packs import OWN
from koordpolicy.runtime.policies.revisions import Reason, Unfit, bundle_of, errors_of, summary_of
from koordpolicy.runtime.trial.limits import TrialLimits
from koordpolicy.runtime.trial.verdict import Rehearse, TrialRequest, TrialVerdict
from koordpolicy.runtime.trial.wire import packed

_LONGEST_TRACE: Final = 10_000
_CHANGES: Final = 8
"""Times at which exceptions begin or end that are looked ahead to."""


def attempt(
    compiler: Compiler,
    request: TrialRequest,
    limits: TrialLimits,
    rehearse: Rehearse | None,
    progress: Progress,
    before: RuleGraph | None = None,
) -> tuple[TrialVerdict, RuleGraph | None]:
    """Compile, test and evaluate a revision; its graph where it is good.

    Raises nothing but `MemoryError`, which is for who set the limit. `before` is the graph of the last good revision
    by the same compiler: its rules have been evaluated.
    """
    graph = None
    try:
        verdict, graph = _attempt(compiler, request, limits, rehearse, progress, before)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the end of this revision alone
        message = f"the compiler failed ({type(error).__name__}: {error}); please report this"
        trace = traceback.format_exc()[-_LONGEST_TRACE:]
        verdict = TrialVerdict(Reason.INTERNAL_ERROR, message, trace=trace)
    return replace(verdict, cpu=time.process_time()), graph


def _attempt(
    compiler: Compiler,
    request: TrialRequest,
    limits: TrialLimits,
    rehearse: Rehearse | None,
    progress: Progress,
    before: RuleGraph | None,
) -> tuple[TrialVerdict, RuleGraph | None]:
    layers = compile_layers(
        compiler, request.files, request.above, progress, chosen=_telling(progress) if request.tests else None
    )
    compilation, graph = layers.compilation, layers.compilation.graph
    if graph is None:
        return _refused(layers.reason, compilation, request), None
    for name, part in _to_evaluate(graph, request.asked, before):
        progress(f"`{name}` was evaluated on an example")
        if (seconds := _evaluated(part, name)) > limits.evaluation:
            message = f"`{name}` took {seconds:.1f} s on an example, more than {limits.evaluation:g} s"
            return TrialVerdict(Reason.LIMIT_EXCEEDED, message, bundle=bundle_of(compilation)), None
    if rehearse is not None:
        progress("the component tried it on an example")
        try:
            for part in _in_time(graph):
                rehearse(part)
        except Unfit as error:
            return TrialVerdict(Reason.UNFIT, str(error), bundle=bundle_of(compilation)), None
    programs = {name: made for name in graph.asked if (made := portable(graph.program(name))) is not None}
    verdict = TrialVerdict(
        found=compilation.found,
        bundle=bundle_of(compilation),
        digest=graph.digest,
        programs=programs,
        learned=packed(layers.made),
    )
    return verdict, graph


def _in_time(graph: RuleGraph) -> Iterator[RuleGraph]:
    """The graph with the exceptions of now in force, and with those of the next times that some begin or end."""
    moment = Timestamp(now_ns())
    yield graph.at(moment)
    for _ in range(_CHANGES):
        change = graph.changes_after(moment)
        if change is None:
            return
        moment = change
        yield graph.at(moment)


def _telling(progress: Progress) -> Callable[[str, str], bool]:
    def chosen(suite: str, case: str) -> bool:
        progress(f"the test `{case}` of {suite} ran")
        return True

    return chosen


def _to_evaluate(
    graph: RuleGraph, asked: Iterable[str], before: RuleGraph | None
) -> Iterator[tuple[str, RuleGraph]]:
    """Decisions, each with the graph to ask: those that are asked as they are, of others the rules that are new.

    Only the bundle's own rules count: the pack's are as they were shipped. Programs that nobody has asked for are
    made of a copy, so that they do not go to the live process.
    """
    whole, aside = frozenset(asked), graph.with_rules(())
    yield from ((name, graph) for name in sorted(whole) if name in graph)
    for key, decision in graph.decisions.items():
        name = str(key)
        own = [rule for rule in decision.rules if rule.layer == OWN]
        if not own or name in whole:
            continue
        known = before.decisions.get(key) if before is not None else None
        if known is None:
            yield name, aside
            continue
        # The compiler's cache keeps what did not change as it was.
        tried = {id(rule) for rule in known.rules}
        yield from ((name, graph.with_rules((rule,))) for rule in own if id(rule) not in tried)


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


def _examples(facts: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    """A record for each root, with all facts of it that are read; a root without facts below it stands for itself."""
    found: dict[str, Any] = {}
    for root, path in sorted(facts):
        if path:
            found.setdefault(root, {})[path] = fill(root, path)
        else:
            found[root] = fill(root, path)
    return found


def _refused(reason: Reason, compilation: Compilation, request: TrialRequest) -> TrialVerdict:
    packs = {path: text for path, text in compilation.sources.items() if path not in request.files}
    return TrialVerdict(
        reason, summary_of(errors_of(compilation.found)), compilation.found, packs, bundle_of(compilation)
    )
