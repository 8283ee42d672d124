"""`koordpolicy check`: the gate in CI."""

import argparse

from koordpolicy.cli.at_flag import add_moment, moment_of
from koordpolicy.cli.bundle import OWN, add_paths, compile_tree, demand_files
from koordpolicy.cli.command import FINDINGS, OK, Command
from koordpolicy.cli.exceptions import told_exceptions
from koordpolicy.cli.fixing import add_fix, fix_files
from koordpolicy.cli.input import add_stdin_filename, read_paths
from koordpolicy.cli.max_cost import add_max_cost
from koordpolicy.cli.terminal import Terminal
from koordpolicy.diagnostics import Diagnostics, Severity
from koordpolicy.diagnostics.render import DEFAULT_LIMIT, RENDERERS, render
from koordpolicy.graph import Compilation
from koordpolicy.graph.exceptions import judge_exceptions
from koordpolicy.graph.testing import with_tests
from koordpolicy.language.kinds.bundle import PolicyTestSpec
from koordpolicy.source import Tree


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "-o", "--output", choices=list(RENDERERS), default="text", help="format of the findings"
    )
    parser.add_argument(
        "--limit",
        type=int,
        default=DEFAULT_LIMIT,
        metavar="N",
        help=f"show at most N findings, 0 for all (default: {DEFAULT_LIMIT})",
    )
    add_stdin_filename(parser)
    add_fix(parser)
    parser.add_argument("--strict", action="store_true", help="warnings fail the check too")
    add_moment(parser)
    add_max_cost(parser)
    parser.add_argument("--no-tests", action="store_true", help="leave out the policy tests")
    parser.add_argument(
        "--explain-cost",
        action="store_true",
        help="show what decisions may cost, and which run for all nodes at once",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    tree = read_paths(arguments.paths, arguments.stdin_filename, terminal)
    demand_files(tree, arguments.paths)

    def check(tree: Tree) -> Compilation:
        compilation = compile_tree(tree, arguments.compiler)
        return compilation if arguments.no_tests else with_tests(compilation)

    compilation = fix_files(arguments, tree, check, terminal) if arguments.fix else check(tree)
    moment = moment_of(arguments.at)
    findings = Diagnostics()
    findings.extend(compilation.found)
    findings.extend(judge_exceptions(compilation.units, moment))
    found = list(findings)
    text = render(
        arguments.output,
        found,
        compilation.sources,
        colour=terminal.colour(),
        width=terminal.width,
        limit=arguments.limit,
    )
    if text:
        terminal.print(text)
    if arguments.explain_cost and compilation.graph is not None:
        from koordpolicy.cli.costs import cost_lines  # noqa: PLC0415  # NumPy, for what few ask for

        # Beside a format for programs the table would be noise in it.
        tell = terminal.print if arguments.output == "text" else terminal.say
        for line in cost_lines(compilation.graph, terminal.width):
            tell(line)
    if arguments.output == "text" and compilation.graph is not None:
        for line in told_exceptions(compilation.units, moment, terminal.width):
            terminal.print(line)
    if arguments.output == "text" and not found:
        terminal.print(_summary(compilation, tested=not arguments.no_tests))
    failing = [one for one in found if arguments.strict or one.severity is Severity.ERROR]
    return FINDINGS if failing else OK


def _summary(compilation: Compilation, *, tested: bool) -> str:
    """What was looked at, where nothing was found."""
    own = [unit for unit in compilation.units if unit.layer_name == OWN] or compilation.units
    cases = sum(len(unit.spec.cases) for unit in own if isinstance(unit.spec, PolicyTestSpec))
    tests = f", {_count(cases, 'test case')} passed" if tested and cases else ""
    return f"{_count(len(own), 'document')}{tests}, no findings"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


COMMAND = Command(_add, _run, epilog="exit code: 0 no errors, 1 findings, 2 could not run")
