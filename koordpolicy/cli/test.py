"""`koordpolicy test`: the PolicyTests of a bundle, with coverage of rules and decisions."""

import argparse
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from time import monotonic

from koordpolicy.cli.bundle import OWN, add_paths, apart, compiled
from koordpolicy.cli.command import FINDINGS, OK, TESTS_FAILED, CannotRunError, Command
from koordpolicy.cli.results import RENDERERS, ShownRun
from koordpolicy.cli.results.opinion import opinion_text
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import Compilation, Layer, RuleGraph
from koordpolicy.graph.mutation.score import Score, score
from koordpolicy.graph.testing import Results, run_tests, updated
from koordpolicy.graph.testing.referee import second_opinion
from koordpolicy.source import read_tree

_MOST_MUTANTS = 300
_MUTATION_TIME = 300


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "-k",
        "--filter",
        metavar="TEXT",
        help="run the cases whose name, or whose test's name, has this text or pattern (`*`, `?`)",
    )
    parser.add_argument(
        "-o", "--output", choices=list(RENDERERS), default="text", help="format of the results"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="list the cases that passed too")
    parser.add_argument(
        "--coverage", action="store_true", help="show coverage by kind, and the branches that no case takes"
    )
    parser.add_argument(
        "--mutate",
        action="store_true",
        help="change the policies in one place at a time, and list the changes that no test notices",
    )
    parser.add_argument(
        "--max-mutants",
        type=int,
        metavar="N",
        default=_MOST_MUTANTS,
        help=f"changes to try at most; a fixed sample where there are more (default: {_MOST_MUTANTS})",
    )
    parser.add_argument(
        "--mutation-time",
        type=int,
        metavar="SECONDS",
        default=_MUTATION_TIME,
        help=f"begin no more changes after that time (default: {_MUTATION_TIME})",
    )
    parser.add_argument(
        "--min-mutation-score",
        type=float,
        metavar="PERCENT",
        help=f"with `--mutate`: exit with {FINDINGS} where tests notice a smaller share of the changes",
    )
    parser.add_argument(
        "--update", action="store_true", help="write the actual values into the tests where they differ"
    )
    parser.add_argument(
        "--referee",
        action="store_true",
        help="ask cel-python too, on the inputs of the tests, and report where it disagrees",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    bundles = apart(arguments.paths)
    if len(bundles) > 1 and arguments.output != "text":
        raise CannotRunError(
            f"`-o {arguments.output}` takes one bundle; name one of: {', '.join(map(' '.join, bundles))}"
        )
    codes = []
    for paths in bundles:
        if len(bundles) > 1:
            terminal.print(" ".join(paths))
        arguments.paths = paths
        codes.append(_test(arguments, terminal))
    return max(codes)


def _test(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Run the tests of one bundle."""
    if arguments.mutate and arguments.filter is not None:
        raise CannotRunError(
            "`--mutate` asks what no test notices, so it needs all of them: leave out `--filter`"
        )
    compilation, graph = compiled(arguments.paths, arguments.compiler)
    run = _tested(graph, compilation, arguments.filter)
    if arguments.update:
        run, compilation = _updated(arguments, compilation, run, terminal)
    if not run.cases and not len(run.found):
        chosen = f" has `{arguments.filter}` in its name" if arguments.filter else "s here"
        raise CannotRunError(f"no test{chosen}; a `PolicyTest` document holds the cases")
    mutation = _mutation(arguments, compilation, run) if arguments.mutate and run.passed else None
    shown = ShownRun(
        run,
        compilation.sources,
        width=terminal.width,
        colour=terminal.colour(),
        verbose=arguments.verbose,
        coverage=arguments.coverage,
        mutation=mutation,
    )
    terminal.print(RENDERERS[arguments.output](shown))
    disagrees = arguments.referee and _referee(arguments, compilation, graph, terminal)
    if not run.passed:
        return TESTS_FAILED
    low = mutation is not None and mutation.percent < (arguments.min_mutation_score or 0)
    return FINDINGS if run.found.has_errors or disagrees or low else OK


def _mutation(arguments: argparse.Namespace, compilation: Compilation, run: Results) -> Score:
    ends = monotonic() + arguments.mutation_time
    own = Layer(OWN, read_tree(arguments.paths).files)
    return score(arguments.compiler, own, compilation, run, arguments.max_mutants, lambda: monotonic() < ends)


def _referee(
    arguments: argparse.Namespace, compilation: Compilation, graph: RuleGraph, terminal: Terminal
) -> bool:
    """Show what cel-python makes of the bundle's expressions; whether it disagrees anywhere.

    Beside results for machines it goes to standard error.
    """
    opinion = second_opinion(graph, compilation.units)
    show = terminal.print if arguments.output == "text" else terminal.say
    show(opinion_text(opinion))
    return bool(opinion.disagreements)


def _tested(graph: RuleGraph, compilation: Compilation, text: str | None) -> Results:
    def chosen(suite: str, case: str) -> bool:
        if text is None:
            return True
        pattern = f"*{text.lower()}*"
        return fnmatchcase(suite.lower(), pattern) or fnmatchcase(case.lower(), pattern)

    return run_tests(graph, compilation.units, chosen, coverage=True)


def _updated(
    arguments: argparse.Namespace, compilation: Compilation, run: Results, terminal: Terminal
) -> tuple[Results, Compilation]:
    """Write what differs, and run again: the new values must hold."""
    texts: Mapping[str, str] = updated(run.cases, compilation.sources)
    for file, text in texts.items():
        try:
            Path(file).write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise CannotRunError(f"`{file}` cannot be written: {error.strerror}") from None
        terminal.say(f"updated {file}")
    if not texts:
        return run, compilation
    again, graph = compiled(arguments.paths, arguments.compiler)
    return _tested(graph, again, arguments.filter), again


COMMAND = Command(
    _add,
    _run,
    epilog=f"exit code: 0 all passed, {TESTS_FAILED} some failed, 1 other findings, 2 could not run",
)
