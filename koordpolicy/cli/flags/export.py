"""The flags of `koordpolicy export`."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import LEFT_OUT, Usage
from koordpolicy.cli.flags.paths import add_paths


def _add(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "--config-namespace",
        metavar="NAME",
        default="koordinator-system",
        help="namespace of the ConfigMap (default: koordinator-system)",
    )
    parser.add_argument(
        "--scheduler",
        action="store_true",
        help="the KubeSchedulerConfiguration of the scheduling profiles instead of objects of the cluster",
    )
    parser.add_argument(
        "--admission-policies",
        action="store_true",
        help="write admission policies for API servers in place of Koordinator's configuration: what holds with no webhook",
    )
    parser.add_argument("-w", "--write", metavar="FILE", type=Path, help="write into a file")
    parser.add_argument(
        "-o",
        "--output",
        choices=("yaml", "json"),
        default="yaml",
        help="format of the objects (default: yaml)",
    )


USAGE = Usage(
    _add,
    "What could not be written is told beside it, with the reason. Exit code: 0 all that is yours was written, 2 could not run, "
    f"{LEFT_OUT} something of yours was not written (what a pack says beyond Koordinator does not count).",
    compiles=True,
)
