"""Records as files, one each, so that a proxy that was killed knows what it was told: a runtime lists neither resources nor environments.

They lie where the socket does, which the next boot of a node finds empty, as it finds no container. A file is replaced as a whole; it is
not synced to a disk, since nothing but a crash of the node could lose it. Environments stand in it: root alone may read.

The directory should lie in memory, as /run does on a node: where a file replaces another one, ext4 first writes the new one to the disk,
and calls wait for that, 8 ms each and some of them 50.
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NewType

from koordpolicy.cri.wire import Field, Form, Message, Shape, WireError

LOG: Final = logging.getLogger(__name__)

_FORM: Final = 1
"""Of the files; those of another one count as missing."""
_KEPT: Final[Shape] = {
    "form": Field(1, Form.INTEGER),
    "asked": Field(2, Form.BYTES),
    "sandbox": Field(3, Form.TEXT),
    "has_resources": Field(4, Form.INTEGER),
}
_IDENTITY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
_SUFFIX: Final = ".record"
"""Of the names of files that the proxy makes, and may take away again; those of others are not its own to judge."""
_LARGEST: Final = 16 << 20
_OWN: Final = 0o600
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Kept:
    """A record: what hook servers are asked about it, and of a container its sandbox, and whether its resources are known.

    A container's own ID may be missing in what is asked: it is the record's.
    """

    asked: bytes
    sandbox: str = ""
    has_resources: bool = False


Prepared = NewType("Prepared", str)
"""The path of a record that is written and has no name yet."""


class Checkpoint:
    """The records of a directory by ID. What cannot be written is told of once: the proxy goes on by what it remembers."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._told = self._told_of_others = False

    def read(self) -> dict[str, Kept]:
        """All records that can be read; the others go, but files by names that are none of ours stay."""
        found = {}
        for identity in self._identities():
            path = self._path(identity)
            try:
                with path.open("rb") as file:
                    found[identity] = read_record(file.read(_LARGEST))
            except (OSError, WireError) as error:
                LOG.warning("%s is no record of a pod or container: %s", path, error)
                self.forget(identity)
        return found

    def keep(self, identity: str, kept: Kept) -> None:
        """Write a record, in place of the one there is."""
        self.settle(self.prepare(identity, kept), identity)

    def prepare(self, name: str, kept: Kept) -> Prepared | None:
        """Write a record whose ID is not known yet, by a name that no other one has meanwhile; None where it cannot be written."""
        if _IDENTITY.fullmatch(name) is None:
            return None
        partly = f"{self._directory}/.{name}{_SUFFIX}"
        try:
            try:
                file = os.open(partly, _WRITE, _OWN)
            except FileNotFoundError:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                file = os.open(partly, _WRITE, _OWN)
            with os.fdopen(file, "wb", buffering=0) as whole:
                left = memoryview(_encoded(kept))
                while left:
                    left = left[whole.write(left) :]
        except OSError as error:
            self._tell(error)
            return None
        return Prepared(partly)

    def settle(self, prepared: Prepared | None, identity: str) -> None:
        """Let what was prepared be the record of an ID."""
        if prepared is None:
            return
        if _IDENTITY.fullmatch(identity) is None:
            self.give_up(prepared)
            return
        try:
            os.replace(prepared, f"{self._directory}/{identity}{_SUFFIX}")  # noqa: PTH105  # each container that starts waits for this
        except OSError as error:
            self._tell(error)

    def give_up(self, prepared: Prepared | None) -> None:
        """Take away what was prepared for nothing."""
        if prepared is not None:
            with suppress(OSError):
                os.unlink(prepared)  # noqa: PTH108  # as it was written

    def forget(self, identity: str) -> None:
        """Take a record away."""
        if _IDENTITY.fullmatch(identity) is not None:
            with suppress(OSError):
                self._path(identity).unlink()

    def _tell(self, error: OSError) -> None:
        if not self._told:
            LOG.warning(
                "records cannot be kept in %s, a restarted proxy will miss them: %s", self._directory, error
            )
        self._told = True

    def _path(self, identity: str) -> Path:
        return self._directory / f"{identity}{_SUFFIX}"

    def _identities(self) -> Iterator[str]:
        try:
            paths = sorted(self._directory.iterdir())
        except OSError:
            return  # nothing was kept yet
        others = []
        for path in paths:
            partly, name = path.name.startswith("."), path.name.removeprefix(".")
            identity = name.removesuffix(_SUFFIX)
            if not name.endswith(_SUFFIX) or _IDENTITY.fullmatch(identity) is None:
                others.append(path.name)
            elif partly:
                with suppress(OSError):
                    path.unlink()  # one that a killed proxy was about to write
            else:
                yield identity
        if others and not self._told_of_others:
            self._told_of_others = True
            LOG.warning(
                "%s holds other files than records (%d, such as %s), which are left alone: give records a directory of their own",
                self._directory,
                len(others),
                others[0],
            )


def _encoded(kept: Kept) -> bytes:
    made = Message(_KEPT)
    made.put_integer("form", _FORM)
    made.put_data("asked", kept.asked)
    made.put_text("sandbox", kept.sandbox)
    made.put_integer("has_resources", kept.has_resources)
    return made.encoded()


def read_record(data: bytes) -> Kept:
    """A record as a file holds it. Raises `WireError`."""
    said = Message(_KEPT, data)
    if (form := said.integer("form")) != _FORM:
        raise WireError(f"it is of form {form}")
    return Kept(said.data("asked"), said.text("sandbox"), bool(said.integer("has_resources")))
