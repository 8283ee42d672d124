"""The command: `python -m tests.fuzz KIND... [--seconds N] [--count N] [--seed N]`; `all` for every kind."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.driver import Totals, run
from tests.fuzz.targets import TARGETS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write. Exit code 1 when a defect was found."""
    kinds = "\n".join(f"  {name:<10} {target.about}" for name, target in TARGETS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=f"Fuzz what comes from outside.\n\nkinds:\n{kinds}\n  all",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kinds", nargs="+", metavar="KIND", choices=[*TARGETS, "all"], help="what to fuzz")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each kind (60)")
    parser.add_argument("--count", type=int, default=sys.maxsize, help="inputs of each kind at most")
    parser.add_argument("--seed", type=int, default=1, help="the same seed draws the same inputs (1)")
    parser.add_argument(
        "--output", type=Path, default=Path("build/fuzz"), help="where inputs are written that show a defect"
    )
    options = parser.parse_args(arguments)
    failed = False
    for name in TARGETS if "all" in options.kinds else options.kinds:
        totals = run(TARGETS[name], options.seconds, options.count, options.seed)
        _report(name, totals, options.output)
        failed |= bool(totals.found)
    return 1 if failed else 0


def _report(name: str, totals: Totals, output: Path) -> None:
    rate = totals.inputs / max(totals.seconds, 1e-9)
    print(
        f"{name}: {totals.inputs:,} inputs in {totals.seconds:.0f} s ({rate:,.0f}/s), slowest {totals.slowest:.2f} s, "
        f"memory {totals.growth / (1 << 20):+.0f} MiB, {len(totals.found)} defects",
        flush=True,
    )
    for at, found in enumerate(totals.found.values()):
        output.mkdir(parents=True, exist_ok=True)
        place = output / f"{name}-{at}"
        place.write_bytes(found.data)
        trace = found.trace.encode("utf-8", "backslashreplace").decode()
        print(f"\n{place}\n{trace}")
    if totals.slowest > 1:
        output.mkdir(parents=True, exist_ok=True)
        (output / f"{name}-slowest").write_bytes(totals.slowest_input)


if __name__ == "__main__":
    sys.exit(main())
