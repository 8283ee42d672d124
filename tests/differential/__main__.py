"""The command: `python -m tests.differential [--count 20000] [--seed N] [--output DIRECTORY]`.

Ends with what was counted. Each disagreement is written as a case of its own into the directory. Exit code 1
when there is any.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.differential.cases import Source, to_json
from tests.differential.run import Totals

BATCH = 1_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=20_000, help="expressions (20,000)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same cases (1)")
    parser.add_argument(
        "--output", type=Path, default=Path("build/differential"), help="where cases are written"
    )
    options = parser.parse_args(arguments)
    totals = Totals()
    told = 0
    begin = time.perf_counter()
    source = Source(options.seed)
    while totals.expressions < options.count:
        totals.visit(source.case())
        if totals.expressions % BATCH == 0 and totals.expressions != told:
            told = totals.expressions
            spent = time.perf_counter() - begin
            print(
                f"{told:,} expressions, {len(totals.disagreements)} disagreements, {spent:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    _report(totals, options.output)
    return 1 if totals.disagreements else 0


def _report(totals: Totals, output: Path) -> None:
    for number, found in enumerate(totals.disagreements):
        print(f"\n{found}")
        output.mkdir(parents=True, exist_ok=True)
        (output / f"case-{number}.json").write_text(to_json(found.case, str(found)), encoding="utf-8")
    print(
        f"\n{totals.expressions:,} different expressions, of which {totals.errors:,} end in an error in every row"
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
