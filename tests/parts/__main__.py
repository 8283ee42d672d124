"""Prepare the real parts: `python -m tests.parts [NAME...]`; `--list` says what is there and makes nothing."""

import argparse
import sys
import time
from collections.abc import Sequence

from tests.parts import cache, table
from tests.parts.finding import CannotMake, Missing, Part


def main(arguments: Sequence[str]) -> int:
    """0 when all parts that were asked for are there, 1 when one is missing, 2 when there is no such part."""
    parser = argparse.ArgumentParser(prog="python -m tests.parts", description=__doc__)
    parser.add_argument(
        "name", nargs="*", help=f"parts; all that tests need when none is named: {', '.join(table.PARTS)}"
    )
    parser.add_argument("--list", action="store_true", help="say what is there, make nothing")
    parser.add_argument(
        "--keep-going", action="store_true", help="exit with 0 whatever is missing: the tests skip it by name"
    )
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.name if name not in table.PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}")
    names = chosen.name or [
        name for name, part in table.PARTS.items() if chosen.list or not part.of_benchmarks
    ]
    missing = 0
    for at, name in enumerate(names, start=1):
        began = time.monotonic()
        line = _listed(table.PARTS[name]) if chosen.list else _prepared(name, f"[{at}/{len(names)}]")
        spent = time.monotonic() - began
        missing += line.startswith("-")
        print(
            f"{name:24} {line}" + (f" ({spent:.0f} s)" if spent >= 1 and not chosen.list else ""), flush=True
        )
    return 1 if missing and not chosen.keep_going else 0


def _listed(part: Part) -> str:
    try:
        found = table.there(part)
    except CannotMake as error:
        return f"- {error}"
    if found is None:
        reason = cache.failure(cache.directory() / part.name)
        return f"- {reason or 'not there yet'}; would be {part.maker.says()}"
    return f"{found.version:10} {found.path} ({found.origin})"


def _prepared(name: str, prefix: str) -> str:
    try:
        found = table.prepare(name, lambda line: cache.tell(f"{prefix} {line}"))
    except Missing as error:
        return f"- {error.reason}"
    return f"{found.version:10} {found.path} ({found.origin})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
