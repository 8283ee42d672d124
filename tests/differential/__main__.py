"""The command: `python -m tests.differential [--count 20000] [--seed N] [--jobs N] [--families A,B] [--referees A,B]`.

Ends with what was counted. Each disagreement is written as a case of its own into the directory. Exit code 1
when there is any.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.differential.cases import FAMILIES
from tests.differential.engines import OURS, REFEREES
from tests.differential.referees import PARTS
from tests.differential.run import Totals
from tests.differential.work import Share, visited


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write."""
    options = _options(arguments)
    totals = Totals()
    begin = time.perf_counter()
    shares = [
        options.count // options.jobs + (at < options.count % options.jobs) for at in range(options.jobs)
    ]
    options.output.mkdir(parents=True, exist_ok=True)
    work = [
        Share(options.seed + at, share, options.families, options.referees, options.output)
        for at, share in enumerate(shares)
    ]
    if options.jobs == 1:
        totals = visited(work[0])
    else:
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            for part in pool.imap_unordered(visited, work):
                totals.add(part)
    _report(totals, time.perf_counter() - begin)
    return 1 if totals.disagreements else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    everything = (*OURS, *REFEREES, *PARTS)
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=20_000, help="expressions (20,000)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same cases (1)")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with a seed of its own (1)")
    parser.add_argument(
        "--families", type=_among(FAMILIES), default=FAMILIES, metavar="NAME,..", help=", ".join(FAMILIES)
    )
    parser.add_argument(
        "--referees",
        type=_among(everything),
        default=everything,
        metavar="NAME,..",
        help=f"what is compared with row programs: {', '.join(everything)}",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("build/differential"), help="where cases are written"
    )
    return parser.parse_args(arguments)


class _among:  # noqa: N801  # a converter, which argparse names in its messages
    """Some of several names, with commas between."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def __call__(self, text: str) -> Sequence[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        if unknown := [name for name in names if name not in self._known]:
            raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(self._known)}")
        return names


def _report(totals: Totals, spent: float) -> None:
    for found in totals.disagreements:
        print(f"\n{found}")
    print(
        f"\n{totals.expressions:,} different expressions in {spent:.0f} s, of which {totals.errors:,} end in an error in every row"
    )
    for engine, count in totals.compared.items():
        print(f"  compared with {engine}: {count:,}")
    for engine, reasons in totals.skipped.items():
        print(f"  skipped by {engine}: {reasons.total():,}")
        for reason, count in reasons.most_common():
            print(f"    {count:>7,}  {reason}")
    print(f"{len(totals.disagreements)} disagreements")


if __name__ == "__main__":
    sys.exit(main())
