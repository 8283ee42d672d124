"""`python -m tests.conformance FILE...`: run conformance cases, one line for each failure."""

import argparse
import json
import sys
from pathlib import Path

from tests.conformance.run import Case, failure


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    options.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON lists of cases")
    options.add_argument(
        "--kind",
        "--file",
        action="append",
        dest="kinds",
        metavar="K",
        help="only cases of this file of the suite",
    )
    options.add_argument("-v", "--verbose", action="store_true", help="show the expression of a failure too")
    chosen = options.parse_args()
    passed = failed = 0
    for path in chosen.files:
        for data in json.loads(path.read_text(encoding="utf-8")):
            case = Case(data)
            if chosen.kinds and case.file not in chosen.kinds:
                continue
            try:
                reason = failure(case)
            except Exception as error:  # noqa: BLE001 - a crash fails one case, not the run
                reason = f"crash: {type(error).__name__}: {error}"
            if reason is None:
                passed += 1
                continue
            failed += 1
            print(f"{case.name}: {reason}")
            if chosen.verbose:
                print(f"    {data['expr']}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
