"""`--given`: facts from a file."""

import argparse


def add_given(parser: argparse.ArgumentParser) -> None:
    """Declare `--given`."""
    parser.add_argument(
        "-g",
        "--given",
        metavar="FILE",
        help="facts to answer on, YAML or JSON, `-` for standard input, as under `given` of a PolicyTest: `{node: {capacity: {cpu: 16}}}`",
    )
