"""Where policies stand."""

import argparse


def add_paths(parser: argparse.ArgumentParser, *, option: bool = False) -> None:
    """Declare the paths of policies: positional, or as the option `--policies`."""
    if option:
        parser.add_argument(
            "-p",
            "--policies",
            metavar="PATH",
            action="append",
            default=[],
            help="file or directory of policies, or the bundle that it lies in; may be repeated; the built-in pack alone without",
        )
    else:
        parser.add_argument(
            "paths",
            metavar="PATH",
            nargs="*",
            default=["."],
            help="files and directories of policies; the bundle that they lie in, if any (default: .)",
        )
