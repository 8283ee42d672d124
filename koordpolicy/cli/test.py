"""`koordpolicy test`: the PolicyTests of a bundle, with coverage of rules and decisions."""

import argparse
from collections.abc import Mapping
from fnmatch import fnmatchcase
from time import monotonic

from koordpolicy.cli.bundle import OWN, apart, compiled
from koordpolicy.cli.command import FINDINGS, OK, TESTS_FAILED, CannotRunError
from koordpolicy.cli.edits import write_text
from koordpolicy.cli.results import RENDERERS, ShownRun
from koordpolicy.cli.results.opinion import opinion_text
from koordpolicy.cli.terminal import Terminal
from koordpolicy.graph import Compilation, Layer, RuleGraph
from koordpolicy.graph.mutation.score import Score, score
from koordpolicy.graph.testing import Results, run_tests, updated
from koordpolicy.graph.testing.referee import second_opinion
from koordpolicy.source import read_tree


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Run the tests, once a bundle; TESTS_FAILED where one does."""
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
        write_text(file, text)
        terminal.say(f"updated {file}")
    if not texts:
        return run, compilation
    again, graph = compiled(arguments.paths, arguments.compiler)
    return _tested(graph, again, arguments.filter), again
