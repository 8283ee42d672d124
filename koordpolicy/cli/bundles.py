"""Which bundles the paths of a command line mean.

A file or folder inside a bundle means the bundle, as in Git or Cargo: it is found in the folder itself or above it, as
a folder with a `koordpolicy.yaml` that holds a PolicyBundle. A folder that is in no bundle, but has bundles below it,
means each of them, by itself.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAMES: Final = ("koordpolicy.yaml", "koordpolicy.yml")
"""What the file is called that makes the folder above others a bundle."""

_BUNDLE: Final = re.compile(r"""^kind:[ \t]*["']?PolicyBundle["']?[ \t]*(#.*)?$""", re.MULTILINE)
_MOST_BYTES: Final = 2**20
_MOST_LEVELS: Final = 64


@dataclass(frozen=True, slots=True)
class BundleFiles:
    """The files of one bundle by path, `root` being where it stands; or files that are in none, with no root."""

    root: str
    files: Mapping[str, str]


def meant(paths: Iterable[str]) -> list[str]:
    """The paths, with the folder of the enclosing bundle in place of whatever lies in one; each once."""
    return list(dict.fromkeys(enclosing(path) or path for path in paths))


def enclosing(path: str) -> str | None:
    """The folder of the bundle that a file or folder lies in, as it is shortest to say from here; None in no bundle.

    Folders of other owners, or that everybody may write, are not asked: whoever put a file there shall not decide.
    """
    place = Path(os.path.realpath(path))
    if not place.exists():
        return None
    folder = place if place.is_dir() else place.parent
    for at in (folder, *folder.parents)[:_MOST_LEVELS]:
        if at != folder and not _is_trusted(at):
            break
        if any(_holds_bundle(at / name) for name in NAMES):
            # What was named keeps its name: through a link, say.
            return path if at == place else _shown(at, path)
        if (at / ".git").exists():
            break  # another repository's bundle is not this one's
    return None


def bundles_in(files: Mapping[str, str]) -> list[BundleFiles]:
    """The bundles among files that were read, the outermost where one lies in another; then what is in none."""
    roots = sorted(
        {os.path.dirname(file) for file, text in files.items() if _BUNDLE.search(text)},  # noqa: PTH120 - as shown
        key=lambda root: (root.count("/"), root),
    )
    outermost: list[str] = []
    for root in roots:
        if not any(_is_below(root, other) for other in outermost):
            outermost.append(root)
    if len(outermost) < 2:
        # Files that are named beside the one bundle belong to it.
        return [BundleFiles(outermost[0] if outermost else "", files)]
    found = [
        BundleFiles(root, {file: text for file, text in files.items() if _is_below(file, root)})
        for root in sorted(outermost)
    ]
    taken = {file for one in found for file in one.files}
    loose = {file: text for file, text in files.items() if file not in taken}
    return [*found, BundleFiles("", loose)] if loose else found


def roots_in(files: Mapping[str, str]) -> list[str]:
    """Where the bundles stand among files that were read; none where the files are one bundle's, or nobody's."""
    return [one.root for one in bundles_in(files) if one.root]


def _is_below(path: str, root: str) -> bool:
    return not root or path == root or path.startswith(f"{root}/")


def _is_trusted(folder: Path) -> bool:
    try:
        status = folder.stat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & stat.S_IWOTH


def _holds_bundle(file: Path) -> bool:
    try:
        if not file.is_file():
            return False
        with file.open("rb") as opened:
            return _BUNDLE.search(opened.read(_MOST_BYTES).decode("utf-8", "replace")) is not None
    except OSError:
        return False


def _shown(folder: Path, path: str) -> str:
    if Path(path).is_absolute():
        return str(folder)
    return os.path.relpath(folder)
