"""The flags that describe a Git repository to follow."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.values_time import NANOS, parse_duration
from koordpolicy.model.quantity import QuantityError, amount
from koordpolicy.source.git.signatures import Signers
from koordpolicy.source.git.size import SyncLimits
from koordpolicy.source.git.surroundings import GitCredentials
from koordpolicy.source.git.sync import SyncSettings
from koordpolicy.source.limits import TreeLimits


def seconds(written: str) -> float:
    """A duration as `5m`, `1h30m` or `500ms`; a bare number is in seconds."""
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
    name, _, number = written.partition("=")
    known = dict(_usual_limits())
    if name not in known:
        raise argparse.ArgumentTypeError(f"`{name}` cannot be limited; known are {', '.join(known)}")
    try:
        most = amount(name, number)
    except QuantityError:
        most = 0
    if most <= 0:
        raise argparse.ArgumentTypeError(f"`{number}` is no amount above 0; write `500`, `20M` or `2Gi`")
    return name, most


def _usual_limits() -> list[tuple[str, str]]:
    """The names of the limits with their defaults as text."""
    usual = SyncLimits()
    amounts = [(name, getattr(usual.tree, name.replace("-", "_"))) for name in TreeLimits.names()]
    return [(name, _written(most)) for name, most in [*amounts, ("fetch", usual.fetch)]]


def _written(most: int) -> str:
    for suffix, size in (("Gi", 1 << 30), ("Mi", 1 << 20)):
        if most % size == 0:
            return f"{most // size}{suffix}"
    return str(most)


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
        + ", ".join(f"{name}={most}" for name, most in _usual_limits())
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


def repository_settings(
    arguments: argparse.Namespace, repository: str, directory: Path, link: str = "", prefix: str = ""
) -> SyncSettings:
    """The settings that the flags make."""

    def given(name: str) -> object:
        return getattr(arguments, f"{prefix}{name}".replace("-", "_"))

    signers = Signers(_path(given("verify-ssh")), _path(given("verify-gpg")))
    return SyncSettings(
        repository,
        directory,
        ref=str(given("ref")),
        link=link,
        depth=int(str(given("depth"))),
        paths=tuple(_list(given("path"))),
        submodules=bool(given("submodules")),
        signers=signers if signers != Signers() else None,
        credentials=GitCredentials(
            str(given("username")),
            _path(given("password-file")),
            _path(given("ssh-key")),
            _path(given("known-hosts")),
        ),
        period=float(str(given("period"))),
        timeout=float(str(given("timeout"))),
        stale_after=float(str(given("stale-after"))),
        limits=_limits(given("limit"), f"--{prefix}limit"),
    )


def _path(given: object) -> Path | None:
    return given if isinstance(given, Path) else None


def _limits(given: object, flag: str) -> SyncLimits:
    changed = dict(given) if isinstance(given, list) else {}
    fetch = changed.pop("fetch", SyncLimits().fetch)
    tree = replace(SyncLimits().tree, **{name.replace("-", "_"): most for name, most in changed.items()})
    return SyncLimits(tree, fetch, flag)


def _list(given: object) -> list[str]:
    return [str(one) for one in given] if isinstance(given, list) else []
