"""How Git is run on a repository that nobody vouches for: what it may do, and what opens the door for it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from koordpolicy.source.git.address import Address
from koordpolicy.source.git.program import Git

_KEPT: Final = frozenset(
    {
        "GIT_ASKPASS",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_EXEC_PATH",
        "GIT_PROXY_COMMAND",
        "GIT_PROXY_SSL_CAINFO",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_CERT",
        "GIT_SSL_KEY",
        "GIT_SSL_NO_VERIFY",
    }
)
"""What may come in from outside of the variables that Git reads. Others would lead it to other files, or make it
print what it sends."""

_SETTINGS: Final = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.symlinks": "true",
    "core.autocrlf": "false",
    "advice.detachedHead": "false",
    # What is larger is streamed, and never held in memory as a whole.
    "core.bigFileThreshold": "16m",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "protocol.ext.allow": "never",
    "gc.auto": "0",
    "gc.autoDetach": "false",
    "maintenance.auto": "false",
    # A server that sends a byte a minute counts as gone.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
}

_HELPER: Final = (
    '!f() { test "$1" = get || return 0; '
    'if test -n "$KOORDPOLICY_GIT_PASSWORD_FILE"; then password=$(cat "$KOORDPOLICY_GIT_PASSWORD_FILE"); '
    "else password=$KOORDPOLICY_GIT_PASSWORD; fi; "
    'printf "username=%s\\npassword=%s\\n" "$KOORDPOLICY_GIT_USERNAME" "$password"; }; f'
)
"""Passwords go from the environment or a file straight to Git: they never stand in an argument or a configuration."""


@dataclass(frozen=True, slots=True)
class GitCredentials:
    """What opens a repository, beside what Git's own configuration and the ssh agent know.

    The password's file is read at each use, so that a token may change in it.
    """

    username: str = ""
    password_file: Path | None = None
    ssh_key: Path | None = None
    known_hosts: Path | None = None


def git_for(address: Address, credentials: GitCredentials, environment: Mapping[str, str]) -> Git:
    """Git as it may be run for a repository: asks nobody, runs no hooks, speaks no protocol but the one asked for."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("GIT_")
        or name in _KEPT
        or name.startswith(("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"))
    }
    kept.pop("LANGUAGE", None)
    kept |= {
        "LC_ALL": "C",  # its words are read
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": ":".join(address.protocols),
        "SSH_ASKPASS_REQUIRE": "never",
    }
    kept.setdefault("GIT_ASKPASS", "")
    if "GIT_SSH_COMMAND" not in kept and "GIT_SSH" not in kept:
        kept["GIT_SSH_COMMAND"] = _ssh(credentials)
    settings = dict(_SETTINGS)
    if address.server and (address.password is not None or credentials.password_file is not None):
        settings["credential.helper"] = ""  # what is given here comes before what others may know
        settings[f"credential.{address.server}.helper"] = _HELPER
        kept["KOORDPOLICY_GIT_USERNAME"] = credentials.username or address.username
        kept["KOORDPOLICY_GIT_PASSWORD_FILE"] = str(credentials.password_file or "")
        kept["KOORDPOLICY_GIT_PASSWORD"] = address.password or ""
    return Git(environment=kept, settings=settings)


def _ssh(credentials: GitCredentials) -> str:
    command = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"]
    if credentials.ssh_key is not None:
        command += ["-i", str(credentials.ssh_key), "-o", "IdentitiesOnly=yes"]
    if credentials.known_hosts is not None:
        command += ["-o", f"UserKnownHostsFile={credentials.known_hosts}", "-o", "StrictHostKeyChecking=yes"]
    return shlex.join(command)
