"""`--at`: the moment a command speaks of."""

import argparse


def add_moment(parser: argparse.ArgumentParser, also: str = "") -> None:
    """Declare `--at`; `also` goes on with what else takes place then."""
    parser.add_argument(
        "--at",
        metavar="TIME",
        help=f"the moment whose PolicyExceptions count{also}, as `2026-07-01T18:00:00Z` or `2026-07-01` (default: now)",
    )
