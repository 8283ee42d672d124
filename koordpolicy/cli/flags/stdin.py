"""`--stdin-filename`: what standard input is called."""

import argparse

UNNAMED = "stdin.yaml"


def add_stdin_filename(parser: argparse.ArgumentParser) -> None:
    """Declare `--stdin-filename`."""
    parser.add_argument(
        "--stdin-filename",
        metavar="FILE",
        default=UNNAMED,
        help="what the text of standard input is called where PATH is `-`; it stands for the file of that name, and is"
        " looked at with the bundle around it, if any",
    )
