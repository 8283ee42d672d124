"""Lays out files of Debian's packages and of wheels below a directory, without running anything of theirs."""

import io
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from deploy.image.making.locks import BuildError

_MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
"""Where Debian's merged /usr has what packages put at the top."""

_UNWANTED = (
    "usr/share/man",
    "usr/share/locale",
    "usr/share/doc-base",
    "usr/share/lintian",
    "usr/share/bash-completion",
    "usr/share/git-core/contrib",
    "usr/share/gitweb",
    "usr/share/info",
    "etc/init.d",
    "etc/cron.d",
    "etc/cron.daily",
    "usr/lib/python3.11/idlelib",
    "usr/lib/python3.11/lib2to3",
    "usr/lib/python3.11/tkinter",
    "usr/lib/python3.11/turtledemo",
    "usr/lib/python3.11/test",
)


def lay_out_deb(file: Path, root: Path) -> str:
    """Unpack a package below `root`; its control fields. Raises BuildError for a path that leads out of it."""
    control = ""
    for name, content in _members(file):
        if name.startswith("control.tar"):
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                member = archive.extractfile("./control")
                assert member is not None
                control = member.read().decode()
        elif name.startswith("data.tar"):
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                for entry in archive:
                    _lay_out(archive, entry, root)
    return control


def lay_out_wheel(file: Path, packages: Path) -> None:
    """Unpack a wheel into a directory of packages. What it would put elsewhere (programs, headers) is left out."""
    with zipfile.ZipFile(file) as archive:
        for entry in sorted(archive.infolist(), key=lambda one: one.filename):
            path = _inner(entry.filename)
            parts = path.parts
            if entry.is_dir() or not parts:
                continue
            if parts[0].endswith(".data"):
                if len(parts) < 3 or parts[1] not in {"purelib", "platlib"}:
                    continue
                parts = parts[2:]
            target = packages.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(entry))
            target.chmod(0o755 if entry.external_attr >> 16 & 0o111 else 0o644)


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of an `ar` archive, which a .deb is."""
    with file.open("rb") as stream:
        if stream.read(8) != b"!<arch>\n":
            raise BuildError(f"{file.name} is no package of Debian's")
        while len(head := stream.read(60)) == 60:
            name, size = head[:16].decode().strip().rstrip("/"), int(head[48:58])
            yield name, stream.read(size)
            stream.read(size % 2)


def _lay_out(archive: tarfile.TarFile, entry: tarfile.TarInfo, root: Path) -> None:
    path = _merged(_inner(entry.name))
    text = str(path)
    if text == "." or any(text == one or text.startswith(one + "/") for one in _UNWANTED):
        return
    if text.startswith("usr/share/doc/") and path.name != "copyright" and not entry.isdir():
        return
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.isdir():
        target.mkdir(exist_ok=True)
    elif entry.issym():
        target.unlink(missing_ok=True)
        target.symlink_to(entry.linkname)
    elif entry.islnk():
        other = root / _merged(_inner(entry.linkname))
        if not other.exists():  # it lies in what is left out
            return
        target.unlink(missing_ok=True)
        target.symlink_to(os.path.relpath(other, target.parent))
    elif entry.isfile():
        content = archive.extractfile(entry)
        assert content is not None
        target.unlink(missing_ok=True)
        target.write_bytes(content.read())
        target.chmod(0o755 if entry.mode & 0o111 else 0o644)  # nothing runs as another user


def _inner(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise BuildError(f"a package holds {name}, which leads out of its place")
    return path


def _merged(path: PurePosixPath) -> PurePosixPath:
    first = path.parts[0] if path.parts else ""
    return PurePosixPath(_MERGED[first], *path.parts[1:]) if first in _MERGED else path
