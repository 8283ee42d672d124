"""`--fix` and what goes with it."""

import argparse


def add_fix(parser: argparse.ArgumentParser) -> None:
    """Declare `--fix` and what goes with it."""
    parser.add_argument(
        "--fix",
        action="store_true",
        help="mend what can be mended without guessing, write the files, and report what is left",
    )
    parser.add_argument(
        "--unsafe-fixes",
        action="store_true",
        help="with --fix: carry out guesses too, such as a name that is nearly the one written",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="with --fix: write nothing, show what would change"
    )
