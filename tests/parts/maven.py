"""Programs of Java, from artifacts that Maven fetches into the cache: a pom pins their versions, a script starts them."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.parts import cache
from tests.parts.cache import Tell
from tests.parts.finding import CannotMake

PROJECTS = Path(__file__).parent / "maven"
OLDEST_JAVA = 11
PATIENCE = 1200
"""Seconds for all artifacts."""


@dataclass(frozen=True, slots=True)
class MavenProject:
    """A directory of `maven/` with a `pom.xml`, and `start.sh`, which finds the artifacts in `lib` beside it."""

    directory: str

    def says(self) -> str:
        return f"fetched by Maven for tests/parts/maven/{self.directory}"

    def made(self, program: str) -> Path | None:
        there = self._place() / program
        return there if there.exists() and shutil.which("java") else None

    def make(self, program: str, tell: Tell) -> Path:
        _check_java()
        maven = shutil.which("mvn")
        if maven is None:
            raise CannotMake("Maven is not installed (Debian: apt-get install maven)")
        place = self._place()
        with cache.lock(cache.directory() / "maven.lock", lambda: tell(f"{program}: waiting for Maven")):
            if not (place / program).exists():
                tell(f"{program}: fetching with {maven}")
                unfinished = place.with_name(place.name + ".unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir(parents=True)
                self._fetch(maven, unfinished)
                start = unfinished / program
                shutil.copyfile(self._folder / "start.sh", start)
                start.chmod(0o755)
                shutil.rmtree(place, ignore_errors=True)
                unfinished.rename(place)
        return place / program

    @property
    def _folder(self) -> Path:
        return PROJECTS / self.directory

    def _place(self) -> Path:
        files = [(self._folder / name).read_bytes() for name in ("pom.xml", "start.sh")]
        return cache.directory() / f"{self.directory}-{cache.content_key(*files)}"

    def _fetch(self, maven: str, place: Path) -> None:
        pom = place / "pom.xml"
        shutil.copyfile(self._folder / "pom.xml", pom)
        _run(
            [
                maven, "--quiet", "--batch-mode", "--file", str(pom), "dependency:copy-dependencies",
                "-DincludeScope=runtime", f"-DoutputDirectory={place / 'lib'}",
            ],
            place,
        )  # fmt: skip


def _check_java() -> None:
    java = shutil.which("java")
    if java is None:
        raise CannotMake("Java is not installed (Debian: apt-get install default-jre-headless)")
    said = _run([java, "-version"], Path.cwd())
    version = re.search(r'version "(\d+)', said)
    if version is not None and int(version[1]) < OLDEST_JAVA:
        raise CannotMake(f"Java {version[1]} is too old, {OLDEST_JAVA} is needed")


def _run(command: list[str], folder: Path) -> str:
    try:
        ran = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
            check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotMake(f"{command[0]}: {error}") from error
    if ran.returncode != 0:
        lines = (ran.stdout + ran.stderr).strip().splitlines()
        raise CannotMake(f"{command[0]} failed: {' | '.join(lines[:2])[:400]}")
    return ran.stdout + ran.stderr
