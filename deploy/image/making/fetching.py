"""Fetches what the locks pin, with apt-get and pip, into a cache; nothing is taken whose hash is another."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.image.making.locks import BuildError, Debian, Pinned, requirements

GLIBC = 36
"""The minor version of the image's C library (2.36): wheels that want a newer one do not run there."""

_PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(GLIBC, 4, -1)),
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "manylinux1_x86_64",
    "linux_x86_64",
)
_SECONDS = 600


def debian_files(packages: Sequence[Debian], cache: Path) -> Sequence[Path]:
    """The packages' files, in order, fetched where the cache lacks them. Raises BuildError."""
    cache.mkdir(parents=True, exist_ok=True)
    absent = [one for one in packages if not (cache / one.file).exists()]
    if absent:
        _apt(cache, "download", *(f"{one.name}={one.version}" for one in absent))
    for one in packages:
        _verify(cache / one.file, (one.sha256,))
    return [cache / one.file for one in packages]


def lock_of(roots: Sequence[str], left_out: frozenset[str], cache: Path) -> Sequence[Debian]:
    """The packages that Debian has today for these roots, all that they depend on included, by name. Raises BuildError."""
    cache.mkdir(parents=True, exist_ok=True)
    nothing_installed = cache / "no-status"
    nothing_installed.touch()
    said = _apt(
        cache, "install", "--print-uris", "--yes", "--no-install-recommends",
        f"--option=Dir::State::status={nothing_installed}", *roots,
    )  # fmt: skip
    files = [line.split()[1] for line in said.splitlines() if line.startswith("'")]
    parts = [file.removesuffix(".deb").split("_") for file in files]
    wanted = sorted((name, version.replace("%3a", ":"), kind) for name, version, kind in parts)
    if unknown := left_out - {name for name, _, _ in wanted}:
        raise BuildError(f"left out, though nothing wants it: {', '.join(sorted(unknown))}")
    kept = [Debian(*one, "") for one in wanted if one[0] not in left_out]
    absent = [one for one in kept if not (cache / one.file).exists()]
    if absent:
        _apt(cache, "download", *(f"{one.name}={one.version}" for one in absent))
    return [Debian(one.name, one.version, one.architecture, sha256(cache / one.file)) for one in kept]


def wheels(packages: Sequence[Pinned], cache: Path) -> Sequence[Path]:
    """A wheel for each package, in order, fetched where the cache lacks it. Raises BuildError."""
    cache.mkdir(parents=True, exist_ok=True)
    found = [_wheel(one, cache) for one in packages]
    absent = [one for one, wheel in zip(packages, found, strict=True) if wheel is None]
    if absent:
        wanted = cache / "requirements.txt"
        wanted.write_text("\n".join(requirements(absent)) + "\n", "utf-8")
        _run(
            [
                sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps",
                "--require-hashes", "--only-binary=:all:", "--implementation=cp", "--python-version=3.11",
                "--abi=cp311", "--abi=abi3", "--abi=none", *(f"--platform={one}" for one in _PLATFORMS),
                f"--dest={cache}", f"--requirement={wanted}",
            ],
            cache,
        )  # fmt: skip
        found = [_wheel(one, cache) for one in packages]
    for one, wheel in zip(packages, found, strict=True):
        if wheel is None:
            raise BuildError(
                f"there is no wheel of {one.name} {one.version} for Python 3.11 on glibc 2.{GLIBC}"
            )
    return [wheel for wheel in found if wheel is not None]


def sha256(file: Path) -> str:
    """The digest of a file, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _wheel(package: Pinned, cache: Path) -> Path | None:
    name = package.name.replace("-", "_")
    for file in sorted(cache.glob("*.whl")):
        distribution, version = file.name.split("-")[:2]
        if (distribution.lower().replace(".", "_"), version) == (name, package.version):
            _verify(file, package.hashes)
            return file
    return None


def _verify(file: Path, hashes: Sequence[str]) -> None:
    if not file.exists():
        raise BuildError(f"{file.name} was not fetched")
    if (digest := sha256(file)) not in hashes:
        file.unlink()
        raise BuildError(
            f"{file.name} has the SHA-256 {digest}, which the lock does not know; it was removed"
        )


def _apt(cache: Path, *words: str) -> str:
    if shutil.which("apt-get") is None:
        raise BuildError(
            "there is no apt-get: build on Debian 12, or in a container of it (deploy/image/Dockerfile)"
        )
    lists = cache / "apt"
    own = ["--option=APT::Sandbox::User=", "--option=Debug::NoLocking=1"]
    try:
        return _run(["apt-get", "--quiet", *own, *words], cache)
    except BuildError:
        for folder in ("lists/partial", "archives/partial"):
            (lists / folder).mkdir(parents=True, exist_ok=True)
        own += [f"--option=Dir::State::lists={lists / 'lists'}", f"--option=Dir::Cache={lists}"]
        _run(["apt-get", "--quiet", *own, "update"], cache)
    try:
        return _run(["apt-get", "--quiet", *own, *words], cache)
    except BuildError as error:
        raise BuildError(
            f"{error}\nwhere Debian has newer versions by now: deploy/image/build --lock"
        ) from error


def _run(command: Sequence[str], folder: Path) -> str:
    try:
        ran = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS,
            check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]}: {error}") from error
    if ran.returncode != 0:
        lines = (ran.stdout + ran.stderr).strip().splitlines()
        raise BuildError(f"{' '.join(command[:4])} failed:\n" + "\n".join(lines[-4:]))
    return ran.stdout
