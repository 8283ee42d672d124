"""The command: `python -m tests.mutations [--count N] [--seed 1] [--jobs 2] [--shown 20]`.

Makes changes of the pack, the examples, the guide's bundles and one of ours, and prints what `diff` says of them. Of
those that compile and change a decision's expression, each is found by an input that both revisions were asked, or proved
to change nothing. Exit code 1 where an answer is wrong.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice

from koordpolicy.graph.proof.draws import Draws
from tests.mutations.judge import Bench, Judgement, Report, identity, sources

Work = tuple[int, int]
"""A source, and one of its mutants, by number."""

_SAID = ("differs", "equal", "gave up")


@cache
def bench(at: int) -> Bench:
    """The bench of a source, made once a process."""
    return Bench(sources()[at])


def judged(work: Work) -> Judgement:
    """One change judged."""
    here = bench(work[0])
    return here.judge(here.mutants[work[1]])


def drawn(seed: int) -> list[Work]:
    """All changes of all sources, each once, in an order that the seed says."""
    every: dict[str, Work] = {}
    for at in range(len(sources())):
        for number, mutant in enumerate(bench(at).mutants):
            every.setdefault(identity(mutant), (at, number))
    return Draws(seed.to_bytes(8, "big")).sample(list(every.values()), len(every))


def run(count: int, seed: int, jobs: int) -> Iterator[Judgement]:
    """Judgements until so many changes compiled and changed an expression, or all were judged."""
    known: set[str] = set()
    waiting = iter(drawn(seed))
    with ProcessPoolExecutor(jobs) as pool:
        while len(known) < count and (batch := list(islice(waiting, 64 * jobs))):
            for one in pool.map(judged, batch, chunksize=8):
                if one.says in _SAID:
                    known.add(one.meaning)
                yield one


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, judge, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--count", type=int, default=10_000, help="changes that compile and change an expression (all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same changes (1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--shown", type=int, default=20, help="how many of those given up are shown (20)")
    options = parser.parse_args(arguments)
    report = Report()
    for one in run(options.count, options.seed, options.jobs):
        report.judgements.append(one)
        if one.gave_up or one.wrong:
            print(f"{one.says}: {one.source} {one.what}: {one.gave_up or one.wrong}"[:500], file=sys.stderr)
        if len(report.judgements) % 250 == 0:
            print(f"{len(report.judgements):,} judged: {dict(report.counts)}", file=sys.stderr)
    return printed(report, options.shown)


def printed(report: Report, shown: int) -> int:
    """The figures."""
    counts, real = report.counts, report.judged
    wrong = [one for one in report.judgements if one.wrong]
    print(
        f"{len(report.judgements):,} changes: {counts['refused']:,} that the compiler refuses, {counts['unchanged']:,} that "
        f"change no expression, {counts['settings']:,} of settings or documents alone, {report.repeated:,} that mean the "
        "same as another"
    )
    kinds = Counter((one.operator, one.says) for one in real)
    failed = Counter(one.operator for one in wrong)
    print(f"{'':<12} {'drawn':>6} {'found':>6} {'equal':>6} {'gave up':>8} {'wrong':>6}")
    for kind in sorted({kind for kind, _ in kinds}):
        row = [kinds[kind, says] for says in _SAID]
        print(_row(kind, [sum(row), *row, failed[kind]]))
    print(_row("all", [len(real), *(sum(one.says == says for one in real) for says in _SAID), len(wrong)]))
    times = sorted(one.seconds for one in real)
    if times:
        print(f"seconds a comparison: median {times[len(times) // 2]:.2f}, longest {times[-1]:.2f}")
    for one in [one for one in real if one.gave_up][:shown]:
        print(f"gave up: {one.source} {one.what}")
        for why in one.gave_up[:3]:
            print(f"    {why}")
    for one in wrong:
        print(f"WRONG: {one.source} {one.what}: {'; '.join(one.wrong)[:500]}")
    return 1 if wrong else 0


def _row(name: str, numbers: Sequence[int]) -> str:
    drawn_, found, equal, gave_up, wrong = (f"{number:,}" for number in numbers)
    return f"{name:<12} {drawn_:>6} {found:>6} {equal:>6} {gave_up:>8} {wrong:>6}"


if __name__ == "__main__":
    sys.exit(main())
