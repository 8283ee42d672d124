"""`deploy/image/build`: the image of this checkout as an OCI archive."""

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.image.making import fetching, locks, tree
from deploy.image.making.locks import BuildError

HERE = Path(__file__).resolve().parents[1]
CHECKOUT = HERE.parents[1]
LAYERS = ("debian", "packages", "koordpolicy")
SBOM = "usr/share/koordpolicy/sbom.cdx.json"


def main(arguments: Sequence[str]) -> int:
    """0 when the image is there, 2 when it could not be made."""
    parser = argparse.ArgumentParser(prog="deploy/image/build", description=__doc__)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the archive (build/koordpolicy-VERSION-amd64.oci.tar)"
    )
    parser.add_argument(
        "--root", type=Path, metavar="DIR", help="lay the file tree out there, as one, and write no archive"
    )
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="what was fetched ($XDG_CACHE_HOME/koordpolicy/image)"
    )
    parser.add_argument(
        "--lock", action="store_true", help="pin what Debian has today in debian.lock, and build nothing"
    )
    given = parser.parse_args(arguments)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = (given.cache or base / "koordpolicy" / "image").absolute()
    try:
        if given.lock:
            write_lock(cache)
            return 0
        version = tree.version_of(CHECKOUT)
        output = (given.output or CHECKOUT / "build" / f"koordpolicy-{version}-amd64.oci.tar").absolute()
        build(version, cache, None if given.root else output, given.root)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def write_lock(cache: Path) -> None:
    """Pin what Debian has today. Raises BuildError."""
    roots, left_out = locks.debian_roots(HERE / "debian.packages")
    found = fetching.lock_of(roots, left_out, cache / "debian")
    lines = [f"{one.name} {one.version} {one.architecture} {one.sha256}" for one in found]
    head = "# Made from debian.packages by `deploy/image/build --lock`: name, version, architecture, SHA-256 of the file."
    (HERE / "debian.lock").write_text("\n".join([head, *lines]) + "\n", "utf-8")
    _tell(f"{len(found)} packages in deploy/image/debian.lock")


def build(version: str, cache: Path, archive: Path | None, laid_out: Path | None) -> None:
    """Make the image; either the archive, or its tree in one directory. Raises BuildError."""
    if platform.machine() != "x86_64":
        raise BuildError(f"debian.lock is of amd64, and this machine is {platform.machine()}")
    debian = locks.debian_lock(HERE / "debian.lock")
    pinned = locks.running_packages(CHECKOUT / "requirements.lock", CHECKOUT / "pyproject.toml")
    _tell(f"[1/4] {len(debian)} packages of Debian's, {len(pinned)} of PyPI's")
    files = fetching.debian_files(debian, cache / "debian")
    wheels = fetching.wheels(pinned, cache / "wheels")
    with tempfile.TemporaryDirectory(prefix="koordpolicy-image-") as folder:
        roots = [Path(folder, name) for name in LAYERS]
        _tell("[2/4] file tree")
        tree.lay_out_debian(debian, files, roots[0])
        tree.lay_out_packages(wheels, roots[1])
        tree.lay_out_koordpolicy(CHECKOUT, version, roots[2])
        bill = roots[2] / SBOM
        bill.parent.mkdir(parents=True)
        bill.write_text(
            json.dumps(_bill(version, tree.components(debian, pinned, wheels)), indent=1) + "\n", "utf-8"
        )
        epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
        order = {
            "epoch": epoch,
            "compile": [[str(roots[0]), "usr/lib/python3.11"], [str(roots[1]), tree.PACKAGES], [str(roots[2]), tree.PACKAGES]],
            "roots": [str(one) for one in roots],
            "archive": f"{archive}.unfinished" if archive else "",
            "image": _description(version, epoch),
        }  # fmt: skip
        _tell("[3/4] bytecode" + (" and layers" if archive else ""))
        if archive is not None:
            archive.parent.mkdir(parents=True, exist_ok=True)
        _carry_out(order, roots[0], Path(folder))
        if archive is not None:
            Path(f"{archive}.unfinished").rename(archive)
            Path(f"{archive}.cdx.json").write_bytes(bill.read_bytes())
            _tell(
                f"[4/4] {archive}: {archive.stat().st_size / 2**20:.0f} MiB, sha256 {fetching.sha256(archive)}"
            )
        if laid_out is not None:
            for root in roots:
                shutil.copytree(root, laid_out, symlinks=True, dirs_exist_ok=True)
            _tell(f"[4/4] {laid_out}")


def _carry_out(order: dict[str, Any], root: Path, folder: Path) -> None:
    """Have the image's own interpreter do what decides bytes, by its own loader and libraries."""
    (folder / "order.json").write_text(json.dumps(order), "utf-8")
    libraries = root / "usr/lib/x86_64-linux-gnu"
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "PATH": ""}
    command = [
        root / "usr/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, root / tree.PYTHON, "-S", "-P", "-B",
        Path(__file__).parent / "archive.py", folder / "order.json",
    ]  # fmt: skip
    ran = subprocess.run(
        [str(word) for word in command], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=1200, check=False,
    )  # fmt: skip
    if ran.returncode != 0:
        raise BuildError(f"the image's interpreter failed:\n{(ran.stdout + ran.stderr).strip()[-2000:]}")


def _description(version: str, epoch: int) -> dict[str, Any]:
    labels = {
        "org.opencontainers.image.title": "koordpolicy",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.description": "Kubernetes co-location as policies in Git: manager, scheduler, agent, commands.",
    }
    return {
        "architecture": "amd64",
        "created": dt.datetime.fromtimestamp(epoch, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "name": "koordpolicy",
        "version": version,
        "layers": [f"deploy/image/build: {name}" for name in LAYERS],
        "annotations": labels,
        "config": {
            "User": f"{tree.USER}:{tree.USER}",
            "Env": [
                "PATH=/usr/local/bin:/usr/bin:/bin",
                "LANG=C.UTF-8",
                "PYTHONDONTWRITEBYTECODE=1",
                "PYTHONUNBUFFERED=1",
            ],
            "Entrypoint": ["koordpolicy"],
            "Cmd": ["--help"],
            "WorkingDir": "/",
            "Labels": labels,
        },
    }


def _bill(version: str, components: list[dict[str, object]]) -> dict[str, object]:
    """A bill of materials as CycloneDX 1.5 has it, without a serial number or time, which would differ."""
    own = {
        "type": "application",
        "bom-ref": f"pkg:pypi/koordpolicy@{version}",
        "name": "koordpolicy",
        "version": version,
        "purl": f"pkg:pypi/koordpolicy@{version}",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own},
        "components": components,
        "dependencies": [
            {"ref": own["bom-ref"], "dependsOn": sorted(str(one["bom-ref"]) for one in components)}
        ],
    }


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
