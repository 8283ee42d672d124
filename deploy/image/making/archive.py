"""Bytecode, layers and the OCI archive of a file tree. Runs under the image's own interpreter, standard library alone.

`python archive.py ORDER.json`, where the order says which directories become layers, in order, and what the image is.
"""

import compileall
import gzip
import hashlib
import io
import json
import os
import py_compile
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX = "application/vnd.oci.image.index.v1+json"


def compile_all(directory: Path, root: Path) -> None:
    """Bytecode beside each source below a directory; tracebacks name the places in the image.

    It is not checked against its source when it is read, for nothing in a read-only image changes. One process, files in
    order: bytes of bytecode depend on what was interned before.
    """
    compileall.compile_dir(
        directory,
        maxlevels=64,
        quiet=2,  # packages ship templates and tests that are no Python; who imports one sees why
        stripdir=str(root),
        prependdir="/",
        workers=1,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def layer(root: Path, epoch: int) -> bytes:
    """A directory as an uncompressed layer: entries in order, all of one time and owner."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _entries(root):
            _add(archive, path, root, epoch)
    return written.getvalue()


def image(layers: Iterable[bytes], described: dict[str, Any]) -> dict[str, bytes]:
    """The files of an OCI layout. `described` has `config`, `created`, `architecture`, `name`, `version`, `annotations`."""
    files: dict[str, bytes] = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"})}
    parts, digests = [], []
    for one in layers:
        digests.append(f"sha256:{hashlib.sha256(one).hexdigest()}")
        parts.append(_blob(files, gzip.compress(one, compresslevel=6, mtime=0), LAYER))
    config = {
        "architecture": described["architecture"],
        "os": "linux",
        "created": described["created"],
        "config": described["config"],
        "rootfs": {"type": "layers", "diff_ids": digests},
        "history": [{"created": described["created"], "created_by": name} for name in described["layers"]],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _blob(files, _json(config), CONFIG),
        "layers": parts,
        "annotations": described["annotations"],
    }
    named = {
        **_blob(files, _json(manifest), MANIFEST),
        "platform": {"architecture": described["architecture"], "os": "linux"},
        "annotations": {
            "io.containerd.image.name": f"{described['name']}:{described['version']}",
            "org.opencontainers.image.ref.name": described["version"],
        },
    }
    files["index.json"] = _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]})
    return files


def write_archive(files: dict[str, bytes], target: Path, epoch: int) -> None:
    """An OCI layout as one file, as `ctr images import` and `skopeo copy oci-archive:` read it."""
    with tarfile.open(target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folders = sorted(
            {str(parent) for name in files for parent in Path(name).parents if str(parent) != "."}
        )
        for name in folders:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, epoch
            archive.addfile(entry)
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(files[name]), 0o644, epoch
            archive.addfile(entry, io.BytesIO(files[name]))


def _entries(root: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names.sort()
        here = Path(folder)
        if here != root:
            yield here
        links = [name for name in names if (here / name).is_symlink()]
        yield from (here / name for name in sorted([*files, *links]))


def _add(archive: tarfile.TarFile, path: Path, root: Path, epoch: int) -> None:
    entry = tarfile.TarInfo(str(path.relative_to(root)))
    entry.mtime = epoch
    if path.is_symlink():
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
        archive.addfile(entry)
        return
    mode = path.stat().st_mode
    if path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if mode & 0o1000 else 0o755
        archive.addfile(entry)
        return
    entry.mode, entry.size = 0o755 if mode & 0o111 else 0o644, path.stat().st_size
    with path.open("rb") as content:
        archive.addfile(entry, content)


def _blob(files: dict[str, bytes], content: bytes, kind: str) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    files[f"blobs/sha256/{digest}"] = content
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def main(order: dict[str, Any]) -> None:
    """Carry out an order: compile what it lists, then write the archive unless only the tree is wanted."""
    epoch = int(order["epoch"])
    for root, directory in order["compile"]:
        compile_all(Path(root, directory), Path(root))
    if order["archive"]:
        layers = (layer(Path(root), epoch) for root in order["roots"])
        write_archive(image(layers, order["image"]), Path(order["archive"]), epoch)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
