"""The flags of `koordpolicy init`."""

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.cli.command import Usage

SERVICES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "github": {".github/workflows/policies.yml": "workflow.yml"},
        "gitlab": {".gitlab-ci.yml": "gitlab-ci.yml"},
        "none": {},
    }
)


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", default=".", help="where, made if need be (default: .)"
    )
    parser.add_argument(
        "--name", help="name of the bundle: lower-case letters, digits and `-` (default: the directory's)"
    )
    parser.add_argument(
        "--ci",
        choices=("all", *SERVICES),
        default="all",
        help="the service that checks changes (default: all)",
    )


USAGE = Usage(
    _add, "What is there already is kept. The result passes `koordpolicy check` and `koordpolicy test`."
)
