"""Kubeconfigs that say all there is to know: an address, whom to trust, and who we are, in place or in files beside.

Most of those that processes are given are no more than this, and for them the official client would be 15 MiB of memory and
a third of a second. Whatever else one holds (credential plugins, providers of tokens, anything wrong) is declined, and the official
client reads it instead, and says what is wrong. What is read is read exactly as it does: the tests compare the two.
"""

import base64
import json
import os
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml  # the reader of the official client

from koordpolicy.files import MemoryFile
from koordpolicy.kube.api.access import Access, Renewal, trust_of
from koordpolicy.kube.api.proxies import proxy_of

_OTHERS: Final = ("exec", "auth-provider")
"""What makes credentials, and is left to the official client."""
_LISTS: Final = ("clusters", "contexts", "users")
_FILES: Final = ("certificate-authority", "client-certificate", "client-key")


class _Declined(Exception):
    """This is not for us."""


def plain_kubeconfig(paths: str, context: str | None) -> Renewal | None:
    """The access that one or several files give, by that context or the current one; None where the official client
    must read them. It is what it is until it is read again.
    """
    try:
        access = _read([Path(path).expanduser() for path in paths.split(os.pathsep) if path], context)
    except (_Declined, OSError, LookupError, RuntimeError, ValueError, yaml.YAMLError):
        return None
    return lambda before: access if before is None else replace(access, tls=before.tls)


class _Entry:
    """A named entry of a file, whose relative paths begin where the file lies."""

    def __init__(self, value: Mapping[str, Any], folder: Path) -> None:
        self._value = value
        self.folder = folder

    def __contains__(self, key: str) -> bool:
        return key in self._value

    def text(self, key: str) -> str:
        """A text that is not empty."""
        return _text(self._value[key])

    def optional(self, key: str) -> str:
        """The same, or "" where there is none."""
        return self.text(key) if key in self else ""

    def flag(self, key: str) -> bool:
        """Whether it is said and true."""
        said = self._value.get(key, False)
        if not isinstance(said, bool):
            raise _Declined
        return said

    def file(self, key: str, stack: ExitStack) -> Path | None:
        """The file that is named, or one made in memory, as long as `stack` lasts, of the data that stand in its place; None for neither."""
        if f"{key}-data" in self:
            return _made(key, base64.standard_b64decode(self.text(f"{key}-data")), stack)
        if key not in self:
            return None
        file = self.folder / self.text(key)
        if not file.is_file():
            raise _Declined
        return file


def _read(files: Sequence[Path], context: str | None) -> Access:
    known: dict[str, dict[str, _Entry]] = {name: {} for name in _LISTS}
    current = context
    for file in files:
        if not file.exists():
            continue
        whole = _mapping(_parsed(file.read_text("utf-8")))
        for kind, entries in known.items():
            for name, entry in _named(whole.get(kind) or [], kind, file.absolute().parent):
                entries.setdefault(name, entry)  # of one name the first counts
        if context is None and "current-context" in whole:
            current = _text(whole["current-context"])  # and of this one the last
    if current is None:
        raise _Declined
    chosen = _of(known["contexts"], current)
    cluster = _of(known["clusters"], chosen.text("cluster"))
    user = _of(known["users"], chosen.text("user")) if "user" in chosen else _Entry({}, cluster.folder)
    return _access(cluster, user)


def _parsed(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)  # much faster, and YAML all the same
        except ValueError:
            pass
    return yaml.safe_load(text)


def _named(entries: object, kind: str, folder: Path) -> list[tuple[str, _Entry]]:
    if not isinstance(entries, list):
        raise _Declined
    one = kind.removesuffix("s")
    return [(_text(each["name"]), _Entry(_mapping(each[one]), folder)) for each in map(_mapping, entries)]


def _access(cluster: _Entry, user: _Entry) -> Access:
    # Of certificates the official client takes the user's paths from the cluster's folder.
    if any(key in user for key in _OTHERS) or user.folder != cluster.folder:
        raise _Declined
    server = cluster.text("server").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise _Declined
    return Access(
        server,
        _authorization(user),
        _trust(cluster, user) if server.startswith("https://") else None,
        cluster.optional("tls-server-name"),
        cluster.text("proxy-url") if "proxy-url" in cluster else proxy_of(server),
    )


def _authorization(user: _Entry) -> str:
    if "token" in user:
        return f"Bearer {user.text('token')}".strip()
    if "tokenFile" in user:
        token = (user.folder / user.text("tokenFile")).read_text("utf-8")
        return f"Bearer {_text(token.strip())}"
    if "username" in user and "password" in user:
        both = f"{user.text('username')}:{user.text('password')}"
        return "Basic " + base64.b64encode(both.encode("ascii")).decode()
    return ""


def _made(name: str, data: bytes, stack: ExitStack) -> Path:
    """A file for the ssl module, which takes keys by a path."""
    if hasattr(os, "memfd_create"):
        return stack.enter_context(MemoryFile(name, data)).path
    file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / name  # nobody else may look into it
    file.write_bytes(data)
    return file


def _trust(cluster: _Entry, user: _Entry) -> ssl.SSLContext:
    with ExitStack() as stack:
        authority, certificate, key = (
            entry.file(name, stack) for name, entry in zip(_FILES, (cluster, user, user), strict=True)
        )
        context = trust_of(None if authority is None else str(authority))
        if cluster.flag("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate, key)
        return context


def _of(entries: Mapping[str, _Entry], name: str) -> _Entry:
    if name not in entries:
        raise _Declined
    return entries[name]


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Declined
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _Declined
    return value
