"""The command: `python -m tests.vectors FILE... [--kind K]...`.

Exit code 0 when every case passed, 1 when one failed, 2 when a file could not be read.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.vectors.files import UnreadableFile, read
from tests.vectors.run import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases of all files and print the failures and the sum."""
    parser = argparse.ArgumentParser(prog="python -m tests.vectors", description="Run vector files.")
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="YAML or JSON file with `vectors`"
    )
    parser.add_argument(
        "--kind", action="append", default=[], metavar="K", help="only this kind (repeat for several)"
    )
    options = parser.parse_args(arguments)
    try:
        vectors = [vector for path in options.files for vector in read(path)]
    except UnreadableFile as error:
        print(error, file=sys.stderr)
        return 2
    passed = failed = 0
    for result in run(vectors, options.kind):
        if result.failure is None:
            passed += 1
        else:
            failed += 1
            print(result.line)
    missing = sorted(set(options.kind) - {vector.kind for vector in vectors})
    if missing:
        print(f"no case of kind {', '.join(missing)} in these files", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
