"""Trees of files as a commit leaves them in a directory: odd names, links, kinds of files, sizes."""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from koordpolicy.diagnostics.render import RENDERERS, render
from koordpolicy.source import digest_of, read_tree
from tests.fuzz.target import Target

_NAMES = (
    b"a.yaml", b"b.yml", b"\xff.yaml", b"pol\xc3\x28.yaml", b"\xed\xa0\x80.yaml", b"\n.yaml", b"\x1b[31m.yaml", b"a b.yaml", b"-.yaml",
    b"\xe2\x80\xae.yaml", b"..yaml", b".hidden.yaml", b"x" * 250 + b".yaml", b"koordpolicy.yaml", b"README", b".git", b"a.yaml.d",
)  # fmt: skip
_KINDS = (
    "text",
    "bytes",
    "empty",
    "directory",
    "link",
    "loop",
    "dangling",
    "outside",
    "fifo",
    "unreadable",
    "sparse",
    "hard",
)


def _seeds() -> Sequence[bytes]:
    return (json.dumps([[0, "text", 0], [2, "text", 0], [13, "text", 0]]).encode(),)


def _mutate(chance: Random, _: Sequence[bytes]) -> bytes:
    entries = [
        [chance.randrange(len(_NAMES)), chance.choice(_KINDS), chance.randrange(4)]
        for _ in range(chance.choice((1, 3, 8, 20)))
    ]
    return json.dumps(entries).encode()


def _run(data: bytes) -> None:
    root = Path(tempfile.mkdtemp(prefix="koordpolicy-fuzz-"))
    try:
        folders = [os.fsencode(root)]
        for name, kind, depth in json.loads(data):
            _make(os.path.join(folders[depth % len(folders)], _NAMES[name]), kind, root, folders)
        tree = read_tree([root])
        digest_of(tree.files)
        for format in RENDERERS:
            render(format, tree.found, tree.files).encode()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _make(path: bytes, kind: str, root: Path, folders: list[bytes]) -> None:
    if os.path.lexists(path):
        return
    match kind:
        case "directory":
            os.mkdir(path)
            folders.append(path)
        case "link":
            os.symlink(folders[0], path)
        case "loop":
            os.symlink(os.path.basename(path), path)
        case "dangling":
            os.symlink(b"nowhere/\xff", path)
        case "outside":
            os.symlink(b"/etc/passwd", path)
        case "fifo":
            os.mkfifo(path)
        case "hard" if os.path.isfile(os.path.join(folders[0], b"a.yaml")):
            os.link(os.path.join(folders[0], b"a.yaml"), path)
        case _:
            content = {
                "text": b"apiVersion: koordpolicy.io/v1alpha1\nkind: Library\nmetadata: {name: a}\n",
                "bytes": b"\xff\xfe\x00a",
            }
            with open(path, "wb") as file:
                file.write(content.get(kind, b""))
                if kind == "sparse":
                    file.truncate(1 << 40)
            if kind == "unreadable":
                os.chmod(path, 0)


TREES = Target("trees", "trees of files", _seeds, _mutate, _run)
