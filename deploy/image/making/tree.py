"""The image's file tree: Debian's files, Python's packages, koordpolicy itself, each in a directory that becomes a layer."""

import re
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

from deploy.image.making.fetching import sha256
from deploy.image.making.locks import Debian, Pinned
from deploy.image.making.unpacking import lay_out_deb, lay_out_wheel

USER = 65532
"""The account that processes run as unless a pod says otherwise."""

PYTHON = "usr/bin/python3.11"
PACKAGES = "usr/local/lib/python3.11/dist-packages"

_FILES = {
    "etc/passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/tmp:/usr/sbin/nologin\n",
    "etc/group": f"root:x:0:\nnonroot:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "etc/os-release": 'PRETTY_NAME="koordpolicy on Debian 12"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
}
_FOLDERS = ("root", "run", "proc", "sys", "dev", "var/lib/koordpolicy")
_START = """#!/usr/bin/python3.11
import sys

from koordpolicy.cli.start import process

sys.exit(process())
"""


def lay_out_debian(packages: Sequence[Debian], files: Sequence[Path], root: Path) -> None:
    """The base layer: Debian's files, the accounts, the certificates, and what scanners read of packages."""
    root.mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    status = root / "var/lib/dpkg/status.d"
    status.mkdir(parents=True)
    for package, file in zip(packages, files, strict=True):
        (status / package.name).write_text(lay_out_deb(file, root), "utf-8")
    for name in _FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    for name, text in _FILES.items():
        (root / name).write_text(text, "utf-8")
    _link(root / "usr/bin/python3", "python3.11")
    _link(root / "usr/bin/sh", "dash")
    _write_certificates(root)


def lay_out_packages(wheels: Sequence[Path], root: Path) -> None:
    """The layer of PyPI's packages."""
    packages = root / PACKAGES
    packages.mkdir(parents=True)
    for wheel in wheels:
        lay_out_wheel(wheel, packages)


def lay_out_koordpolicy(checkout: Path, version: str, root: Path) -> None:
    """The layer of koordpolicy, in the places where a wheel has it."""
    packages = root / PACKAGES
    packages.mkdir(parents=True)
    built = tomllib.loads((checkout / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]
    places: dict[str, str] = built["wheel"]["sources"]
    for name in built["wheel"]["only-include"]:
        shutil.copytree(
            checkout / name,
            packages / places.get(name, name),
            ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
            dirs_exist_ok=True,
        )
    known = packages / f"koordpolicy-{version}.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: koordpolicy\nVersion: {version}\n", "utf-8"
    )
    (known / "LICENSE").write_bytes((checkout / "LICENSE").read_bytes())
    start = root / "usr/local/bin/koordpolicy"
    start.parent.mkdir(parents=True)
    start.write_text(_START, "utf-8")
    start.chmod(0o755)


def version_of(checkout: Path) -> str:
    """koordpolicy's version, read and not imported."""
    match = re.search(
        r'^__version__ = "(.+)"$', (checkout / "koordpolicy/__init__.py").read_text("utf-8"), re.MULTILINE
    )
    assert match is not None
    return match[1]


def components(
    packages: Sequence[Debian], pinned: Sequence[Pinned], wheels: Sequence[Path]
) -> list[dict[str, object]]:
    """What the image is made of, as CycloneDX names it, but koordpolicy itself; the hashes are those of the files fetched."""
    found: list[dict[str, object]] = [
        _component(
            one.name, one.version, one.sha256,
            f"pkg:deb/debian/{one.name}@{one.version}?arch={one.architecture}&distro=debian-12",
        )
        for one in packages
    ]  # fmt: skip
    for package, wheel in zip(pinned, wheels, strict=True):
        purl = f"pkg:pypi/{package.name}@{package.version}"
        found.append(_component(package.name, package.version, sha256(wheel), purl))
    return found


def _component(name: str, version: str, digest: str, purl: str) -> dict[str, object]:
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


def _link(link: Path, target: str) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _write_certificates(root: Path) -> None:
    """What Debian's update-ca-certificates would write: all authorities in one file."""
    authorities = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_text("".join(one.read_text("ascii").rstrip("\n") + "\n" for one in authorities), "ascii")
