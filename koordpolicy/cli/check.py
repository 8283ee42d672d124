"""`koordpolicy check`: the gate in CI."""

import argparse
from collections.abc import Sequence

from koordpolicy.cli.at_flag import moment_of
from koordpolicy.cli.awaited import awaited_line
from koordpolicy.cli.bundle import OWN, compile_trees, demand_files, left_alone
from koordpolicy.cli.bundles import meant, roots_in
from koordpolicy.cli.command import FINDINGS, OK, CannotRunError
from koordpolicy.cli.counted import counted
from koordpolicy.cli.exceptions import told_exceptions
from koordpolicy.cli.fixing import fix_files
from koordpolicy.cli.input import around, read_paths
from koordpolicy.cli.proofs import with_proofs
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cli.unread import unread
from koordpolicy.diagnostics import Diagnostics, Severity
from koordpolicy.diagnostics.render import render
from koordpolicy.graph import Compilation, RuleGraph
from koordpolicy.graph.exceptions import judge_exceptions
from koordpolicy.graph.not_yet import not_yet
from koordpolicy.graph.state import Unit
from koordpolicy.graph.testing import with_tests
from koordpolicy.language.kinds import API_VERSION
from koordpolicy.language.kinds.bundle import PolicyTestSpec
from koordpolicy.source import Tree


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Find what is wrong; FINDINGS where anything fails the check."""
    tree = read_paths(
        meant(around(arguments.paths, arguments.stdin_filename)), arguments.stdin_filename, terminal
    )
    demand_files(tree, arguments.paths)
    bundles = roots_in(tree.files)
    for flag, asked in (("--explain-cost", arguments.explain_cost), ("--native", arguments.native)):
        if asked and len(bundles) > 1:
            raise CannotRunError(f"{flag} takes one bundle; name one of: {', '.join(bundles)}")

    def check(tree: Tree) -> Compilation:
        compilations = compile_trees(tree, arguments.compiler)
        if not arguments.no_tests:
            compilations = [with_tests(one) for one in compilations]
        return _together(compilations if arguments.no_proofs else [with_proofs(one) for one in compilations])

    compilation = fix_files(arguments, tree, check, terminal) if arguments.fix else check(tree)
    if not compilation.found.has_errors and not any(unit.layer_name == OWN for unit in compilation.units):
        raise CannotRunError(_nothing(compilation, arguments.paths, terminal.width))
    moment = moment_of(arguments.at)
    findings = Diagnostics()
    findings.extend(compilation.found)
    findings.extend(judge_exceptions(compilation.units, moment))
    awaited = Diagnostics()
    if not findings.has_errors:  # what is wrong comes first
        awaited = not_yet(_own(compilation))
    noted = len(awaited) > 0
    in_a_line = arguments.output == "text" and not arguments.verbose
    if not in_a_line:
        findings.extend(awaited)
    found = list(findings)
    text = render(
        arguments.output,
        found,
        compilation.sources,
        colour=terminal.colour(),
        width=terminal.width,
        limit=arguments.limit,
        files=[file for file in tree.files if file not in compilation.foreign],
    )
    if text:
        terminal.print(text)
    if in_a_line and noted:
        terminal.print(awaited_line(list(awaited), terminal.width))
    if compilation.graph is not None:
        _tell_more(arguments, compilation.graph, terminal)
    if arguments.output == "text" and compilation.graph is not None:
        for line in told_exceptions(compilation.units, moment, terminal.width):
            terminal.print(line)
    if alone := left_alone(compilation.foreign, terminal.width):
        terminal.say(alone)
    if unseen := unread(tree.nearly, terminal.width):
        terminal.say(unseen)
    if arguments.output == "text" and all(one.severity is Severity.NOTE for one in found):
        terminal.print(
            _summary(compilation, len(bundles), tested=not arguments.no_tests, noted=noted or bool(found))
        )
    failing = [one for one in found if one.severity in (_STRICT if arguments.strict else _USUAL)]
    return FINDINGS if failing else OK


def _tell_more(arguments: argparse.Namespace, graph: RuleGraph, terminal: Terminal) -> None:
    """What is only told when asked for. Beside a format for programs it would be noise in it."""
    tell = terminal.print if arguments.output == "text" else terminal.say
    if arguments.explain_cost:
        from koordpolicy.cli.costs import cost_lines  # noqa: PLC0415  # NumPy, for what few ask for

        for line in cost_lines(graph, terminal.width):
            tell(line)
    if arguments.native:
        from koordpolicy.cli.native import native_lines  # noqa: PLC0415  # the webhooks, for what few ask for

        for line in native_lines(graph, terminal.width):
            tell(line)


_USUAL = frozenset((Severity.ERROR,))
_STRICT = frozenset((Severity.ERROR, Severity.WARNING))
"""What fails a check; notes never do."""


def _together(compilations: Sequence[Compilation]) -> Compilation:
    """What came of several bundles as one; a graph, of the first, only where all have one."""
    found, units = Diagnostics(), [unit for one in compilations for unit in one.units]
    sources: dict[str, str] = {}
    foreign: dict[str, str] = {}
    for one in compilations:
        found.extend(one.found)
        sources.update(one.sources)
        foreign.update(one.foreign)
    graph = None if any(one.graph is None for one in compilations) else compilations[0].graph
    return Compilation(graph, found, tuple(units), sources, foreign=foreign)


def _own(compilation: Compilation) -> Sequence[Unit]:
    return [unit for unit in compilation.units if unit.layer_name == OWN] or compilation.units


def _nothing(compilation: Compilation, paths: Sequence[str], width: int) -> str:
    """What is said where there are files, and none of them has a policy."""
    below = ", ".join(f"`{path}`" for path in paths)
    said = f"nothing was found to check: no document below {below} is a policy (`apiVersion: {API_VERSION}`)"
    alone = left_alone(compilation.foreign, width)
    return f"{said}\n{alone}" if alone else said


def _summary(compilation: Compilation, bundles: int, *, tested: bool, noted: bool) -> str:
    """What was looked at, where nothing was found that has to be mended."""
    own = _own(compilation)
    cases = sum(len(unit.spec.cases) for unit in own if isinstance(unit.spec, PolicyTestSpec))
    tests = f", {counted(cases, 'test case')} passed" if tested and cases else ""
    where = f" in {bundles:,} bundles" if bundles > 1 else ""
    return f"{counted(len(own), 'document')}{where}{tests}, {'no errors or warnings' if noted else 'no findings'}"
