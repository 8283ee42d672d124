"""The command: `python -m tests.mutations [--count 2000] [--seed 1] [--jobs 2] [--shown 20]`.

Draws changes of the pack, the examples and a bundle of ours, and prints what `diff` says of them. Of those that compile
and change an expression, each is found by an input that both revisions were asked, or proved to change nothing. Exit
code 1 where an answer is wrong.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import chain, islice

from koordpolicy.graph.proof.draws import Draws
from tests.mutations.draw import Mutation
from tests.mutations.judge import Bench, Judgement, Report, sources


@cache
def bench(at: int) -> Bench:
    """The bench of a source, made once a process."""
    return Bench(sources()[at])


def judged(work: tuple[int, Mutation]) -> Judgement:
    """One change judged."""
    return bench(work[0]).judge(work[1])


def drawn(seed: int) -> list[tuple[int, Mutation]]:
    """All changes of all sources, in an order that the seed says."""
    every = list(
        chain.from_iterable(((at, one) for one in bench(at).mutations()) for at in range(len(sources())))
    )
    return Draws(seed.to_bytes(8, "big")).sample(every, len(every))


def run(count: int, seed: int, jobs: int) -> Iterator[Judgement]:
    """Judgements until so many changes compiled and changed an expression, or all were judged."""
    work = drawn(seed)
    left = count
    with ProcessPoolExecutor(jobs) as pool:
        waiting = iter(work)
        while left > 0 and (batch := list(islice(waiting, 64 * jobs))):
            for one in pool.map(judged, batch, chunksize=8):
                left -= one.says in ("differs", "equal", "gave up")
                yield one


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, judge, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--count", type=int, default=2_000, help="changes that compile and change an expression (2,000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same changes (1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--shown", type=int, default=20, help="how many of those given up are shown (20)")
    options = parser.parse_args(arguments)
    report = Report()
    for one in run(options.count, options.seed, options.jobs):
        report.judgements.append(one)
        if len(report.judgements) % 250 == 0:
            print(f"{len(report.judgements):,} judged: {dict(report.counts)}", file=sys.stderr)
    return printed(report, options.shown)


def printed(report: Report, shown: int) -> int:
    """The figures."""
    counts, real = report.counts, report.judged
    print(
        f"{len(report.judgements):,} changes: {counts['refused']:,} that the compiler refuses, {counts['unchanged']:,} that "
        f"change no expression, {counts['settings']:,} of settings or documents alone"
    )
    print(
        f"{len(real):,} change an expression: {counts['differs']:,} found by an input, {counts['equal']:,} proved to decide "
        f"alike, {counts['gave up']:,} given up"
    )
    kinds = Counter((one.mutation.kind, one.says) for one in real)
    for kind in sorted({kind for kind, _ in kinds}):
        told = ", ".join(
            f"{says} {kinds[kind, says]:,}" for says in ("differs", "equal", "gave up") if kinds[kind, says]
        )
        print(f"  {kind:<15} {told}")
    times = sorted(one.seconds for one in real)
    if times:
        print(f"seconds a comparison: median {times[len(times) // 2]:.2f}, longest {times[-1]:.2f}")
    for one in [one for one in real if one.gave_up][:shown]:
        print(f"gave up: {one.source} {one.mutation.what}")
        for why in one.gave_up[:3]:
            print(f"    {why}")
    wrong = [one for one in report.judgements if one.wrong]
    for one in wrong:
        print(f"WRONG: {one.source} {one.mutation.what}: {'; '.join(one.wrong)[:500]}")
    print(f"{len(wrong):,} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
