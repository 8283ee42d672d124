"""Random clusters: our scheduler against a plain oracle, and both against the real kube-scheduler.

    python -m tests.differential_scheduling [--clusters 100] [--pods 2000] [--seed N] [--output DIR] [--oracle-only]

Ends with what was counted. Each disagreement is made smaller where that needs no server, and written as a
case of its own into the directory. Exit code 1 when there is any, 2 when a program cannot be had.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.differential_scheduling.drawing import draw
from tests.differential_scheduling.real import real_scheduler
from tests.differential_scheduling.run import Totals, ask, smaller, still
from tests.parts.finding import Missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential_scheduling", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--clusters", type=int, default=100, help="clusters (100)")
    parser.add_argument("--pods", type=int, default=2000, help="pods in all of them together (2,000)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same clusters (1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first cluster (0)")
    parser.add_argument(
        "--oracle-only", action="store_true", help="without kube-scheduler, which is much faster"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("build/differential-scheduling"), help="where cases are written"
    )
    options = parser.parse_args(arguments)
    totals = Totals()
    begin = time.perf_counter()
    try:
        if options.oracle_only:
            for number in _numbers(options):
                totals.visit(draw(options.seed, number, _waiting(options)))
                _tell(totals, begin)
        else:
            asyncio.run(_with_real(options, totals, begin))
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 2
    _report(totals, options.output)
    return 1 if totals.disagreements else 0


def _numbers(options: argparse.Namespace) -> range:
    return range(options.first, options.first + options.clusters)


def _waiting(options: argparse.Namespace) -> int:
    return max(1, -(-int(options.pods) // int(options.clusters)))


async def _with_real(options: argparse.Namespace, totals: Totals, begin: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with real_scheduler(Path(folder)) as real:
            for number in _numbers(options):
                totals.add(await ask(real, draw(options.seed, number, _waiting(options))))
                _tell(totals, begin)


def _tell(totals: Totals, begin: float) -> None:
    if totals.clusters % 25 == 0:
        print(
            f"{totals.clusters:,} clusters, {len(totals.disagreements)} disagreements, "
            f"{time.perf_counter() - begin:.0f} s",
            file=sys.stderr,
            flush=True,
        )


def _report(totals: Totals, output: Path) -> None:
    for number, found in enumerate(totals.disagreements):
        print(f"\n{found}")
        case = replace(found.case, real=None)
        case = smaller(case) if still(case) else found.case
        output.mkdir(parents=True, exist_ok=True)
        written = replace(case, note="\n".join(found.found)).to_json()
        (output / f"case-{number}.json").write_text(written, encoding="utf-8")
    for text in totals.not_taken:
        print(f"\nnot taken by the API server: {text}")
    evaluation = sum(count for sort, count in totals.pods.items() if sort.startswith("fit "))
    print(f"\n{evaluation:,} pods on {totals.clusters:,} clusters")
    for sort, count in sorted(totals.pods.items()):
        print(f"  {sort}: {count:,}")
    print("nodes refused, by the reason that the oracle gives:")
    for reason, count in totals.refusals.most_common():
        print(f"  {count:>8,}  {reason}")
    print(f"{len(totals.disagreements)} disagreements")


if __name__ == "__main__":
    sys.exit(main())
