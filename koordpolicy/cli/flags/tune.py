"""The flags of `koordpolicy tune`."""

import argparse
from collections.abc import Callable

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.paths import add_paths
from koordpolicy.cli.flags.workload import DEFAULT_SEEDS, add_course, add_workload

MOST_TRIALS = 100_000
MOST_JOBS = 256
MOST_MINUTES = 100_000
_LAST_PORT = 65_535


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    aim = parser.add_mutually_exclusive_group(required=True)
    aim.add_argument(
        "--maximise",
        metavar="CEL",
        help="what is to grow, of the report as `simulate -o json` has it: `report.batch.coreHours`",
    )
    aim.add_argument("--minimise", metavar="CEL", help="what is to shrink")
    parser.add_argument(
        "--subject-to",
        metavar="CEL",
        action="append",
        default=[],
        help="what must hold by each seed: `report.services.violationShare < 0.01`; may be repeated",
    )
    parser.add_argument(
        "--trials",
        metavar="N",
        type=_number("trials", MOST_TRIALS),
        default=30,
        help="choices that are tried at most, those before --resume included (default: 30)",
    )
    parser.add_argument(
        "--minutes",
        metavar="N",
        type=_minutes,
        help="begin no further trial after so many minutes",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_number("processes", MOST_JOBS),
        help="simulate in so many processes (default: 1, by which the search is the same each time);"
        " with --dask, have so many trials in work at a time (default: as many as there are workers)",
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        type=_scheduler,
        help="simulate on the workers of this Dask scheduler, `tcp://HOST:PORT` or `tls://HOST:PORT`, which have the same koordpolicy"
        " installed and need no files; name one that you trust, as it may run what it likes here",
    )
    parser.add_argument(
        "--study", metavar="FILE", help="keep the search in this file as it goes, so that it can be resumed"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the search in --study")
    parser.add_argument(
        "--confirm-seeds",
        metavar="N",
        type=_number("seeds", 1_000),
        default=3,
        help="seeds after those of the search by which the best is compared with what there was (default: 3)",
    )
    parser.add_argument(
        "--accept-unsure",
        action="store_true",
        help="leave the change, too, where those seeds find it better in the mean but chance may have made that; without, nothing is shown or"
        " written but the evidence",
    )
    parser.add_argument("--write", action="store_true", help="change the files; without, the change is shown")
    parser.add_argument("--patch", metavar="FILE", help="write the change as a unified diff")
    parser.add_argument(
        "--evidence",
        metavar="FILE",
        help="write what speaks for it: *.json all of it, *.md for a merge request",
    )
    parser.add_argument(
        "--rollout", metavar="FILE", help="write a Rollout by which the change goes live by steps"
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=["text", "json"],
        default="text",
        help="format of what is told; json has all trials, as --evidence",
    )
    add_workload(parser)
    add_course(parser, "each trial", DEFAULT_SEEDS)


def _number(what: str, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"`{text}` is not a number of {what} from 1 to {most:,}")
        return int(text)

    return read


def _scheduler(text: str) -> str:
    scheme, _, place = text.partition("://")
    host, colon, port = place.rpartition(":")
    if scheme not in ("tcp", "tls") or not host or not colon or not (port.isascii() and port.isdecimal()):
        raise argparse.ArgumentTypeError(
            f"`{text}` is not the address of a Dask scheduler: `tcp://HOST:PORT` or `tls://HOST:PORT`, as 8786 is the usual port"
        )
    if not 0 < int(port[:6]) <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"`{text}`: ports lie between 1 and {_LAST_PORT:,}")
    return text


def _minutes(text: str) -> float:
    number = float(text) if text.replace(".", "", 1).isdecimal() else 0.0
    if not 0 < number <= MOST_MINUTES:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of minutes up to {MOST_MINUTES:,}")
    return number


USAGE = Usage(
    _add,
    "exit code: 0 something better was found, 1 nothing was, or by other seeds it did not hold or was not sure (but with --accept-unsure),"
    " 2 could not run, 130"
    " interrupted: what was tried stands in --study",
)
