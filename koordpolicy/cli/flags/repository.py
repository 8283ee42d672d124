"""The flags that describe a Git repository to follow."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

LIMITS: Mapping[str, str] = MappingProxyType(
    {
        "bytes": "512Mi",
        "files": "100000",
        "file-bytes": "64Mi",
        "entries": "1000000",
        "depth": "64",
        "path": "1024",
        "fetch": "1Gi",
    }
)
"""The most that is taken of a repository, unless told otherwise."""


def seconds(written: str) -> float:
    """A duration as `5m`, `1h30m` or `500ms`; a bare number is in seconds."""
    from koordpolicy.language.cel.errors import CelError  # noqa: PLC0415  # only for those who set one
    from koordpolicy.language.cel.values_time import NANOS, parse_duration  # noqa: PLC0415

    text = written if written[-1:].isalpha() else f"{written}s"
    try:
        duration = parse_duration(text)
    except CelError:
        duration = None
    if duration is None or duration.ns < 0:
        raise argparse.ArgumentTypeError(f"`{written}` is no duration; write `10s`, `5m` or `1h30m`")
    return duration.ns / NANOS


def limit(written: str) -> tuple[str, int]:
    """What is limited, and to how much: `bytes=2Gi`, `files=200000`."""
    from koordpolicy.model.quantity import QuantityError, amount  # noqa: PLC0415  # only for those who set one

    name, _, number = written.partition("=")
    if name not in LIMITS:
        raise argparse.ArgumentTypeError(f"`{name}` cannot be limited; known are {', '.join(LIMITS)}")
    try:
        most = amount(name, number)
    except QuantityError:
        most = 0
    if most <= 0:
        raise argparse.ArgumentTypeError(f"`{number}` is no amount above 0; write `500`, `20M` or `2Gi`")
    return name, most


class Flags(Protocol):
    """What flags are declared on: a parser, or a group of one."""

    def add_argument(self, *names: str, **details: Any) -> argparse.Action:
        """As argparse says."""
        ...


def add_repository_flags(parser: Flags, prefix: str = "") -> None:
    """Declare what is told of a repository, beside its address; `prefix` comes before the names of the flags."""
    flag = f"--{prefix}"
    parser.add_argument(
        f"{flag}ref",
        metavar="REF",
        default="HEAD",
        help="branch, tag or whole commit (default: HEAD, the repository's main branch)",
    )
    parser.add_argument(
        f"{flag}path",
        metavar="PATH",
        action="append",
        default=[],
        help="part of the repository; may be repeated (default: all of it)",
    )
    parser.add_argument(
        f"{flag}depth", metavar="N", type=int, default=1, help="commits of history, 0 for all (1)"
    )
    parser.add_argument(f"{flag}submodules", action="store_true", help="fetch submodules too")
    parser.add_argument(
        f"{flag}limit",
        metavar="NAME=N",
        action="append",
        type=limit,
        default=[],
        help="the most that is taken of a commit, or fetched; may be repeated (default: "
        + ", ".join(f"{name}={most}" for name, most in LIMITS.items())
        + ")",
    )
    times = parser.add_argument_group("times") if isinstance(parser, argparse.ArgumentParser) else parser
    times.add_argument(
        f"{flag}period",
        metavar="TIME",
        type=seconds,
        default=10.0,
        help="from one look to the next (default: 10s)",
    )
    times.add_argument(
        f"{flag}timeout",
        metavar="TIME",
        type=seconds,
        default=120.0,
        help="of one command of Git's (default: 2m)",
    )
    times.add_argument(
        f"{flag}stale-after",
        metavar="TIME",
        type=seconds,
        default=300.0,
        help="remove trees so long after they were replaced (default: 5m)",
    )
    access = (
        parser.add_argument_group("access, beside Git's own configuration")
        if isinstance(parser, argparse.ArgumentParser)
        else parser
    )
    access.add_argument(f"{flag}username", metavar="NAME", default="", help="for HTTPS")
    access.add_argument(
        f"{flag}password-file", metavar="FILE", type=Path, help="password or token, for HTTPS"
    )
    access.add_argument(f"{flag}ssh-key", metavar="FILE", type=Path, help="private key, for SSH")
    access.add_argument(
        f"{flag}known-hosts", metavar="FILE", type=Path, help="host keys that are accepted, for SSH"
    )
    signed = (
        parser.add_argument_group("signatures") if isinstance(parser, argparse.ArgumentParser) else parser
    )
    signed.add_argument(
        f"{flag}verify-ssh",
        metavar="FILE",
        type=Path,
        help="refuse commits that none of these allowed signers signed",
    )
    signed.add_argument(
        f"{flag}verify-gpg",
        metavar="DIR",
        type=Path,
        help="refuse commits that none of these public keys (*.asc, *.gpg, or a GnuPG home) signed",
    )
