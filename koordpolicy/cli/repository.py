"""The flags that describe a Git repository to follow."""

import argparse
from dataclasses import replace
from pathlib import Path

from koordpolicy.source.git.environment import GitCredentials
from koordpolicy.source.git.signatures import Signers
from koordpolicy.source.git.size import SyncLimits
from koordpolicy.source.git.sync import SyncSettings


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
