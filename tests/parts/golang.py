"""Programs built with Go, once, from a module that pins every version and sum."""

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.parts import cache
from tests.parts.cache import Tell
from tests.parts.finding import CannotMake

MODULES = Path(__file__).parent / "go"
HEARTBEAT = 20.0
"""Seconds between two signs of life of a long build."""


@dataclass(frozen=True, slots=True)
class GoModule:
    """A directory of `go/` and the programs that it builds: name -> package. `stamp` are linker variables.

    A program of our own has its source beside `go.mod`. `borrows` names another directory whose source it takes,
    and `instead` the import paths that are others here.
    """

    directory: str
    packages: Mapping[str, str]
    stamp: Mapping[str, str] = field(default_factory=dict)
    borrows: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)

    def says(self) -> str:
        return f"built with Go from tests/parts/go/{self.directory}"

    def made(self, program: str) -> Path | None:
        built = self._place(program)
        return built if built.exists() else None

    def make(self, program: str, tell: Tell) -> Path:
        go = self._toolchain()
        built = self._place(program)
        # One build at a time on a machine: each takes all cores, and linking takes a lot of memory.
        with cache.lock(
            cache.directory() / "go.lock", lambda: tell(f"{program}: waiting for another build to end")
        ):
            if not built.exists():
                self._build(go, program, built, tell)
        return built

    def source_files(self) -> Sequence[Path]:
        """The module's own files, in order."""
        folder = MODULES / self.directory
        return [folder / "go.mod", folder / "go.sum", *sorted(folder.glob("*.go"))]

    def sources(self) -> Mapping[str, bytes]:
        """What decides the outcome: files by name, borrowed ones with their imports changed."""
        found = {file.name: file.read_bytes() for file in self.source_files()}
        borrowed = sorted((MODULES / self.borrows).glob("*.go")) if self.borrows else []
        for file in borrowed:
            text = file.read_text("utf-8")
            for path, other in self.instead.items():
                text = text.replace(path, other)
            found.setdefault(file.name, text.encode())
        return found

    def _place(self, program: str) -> Path:
        contents = self.sources().values()
        key = cache.content_key(*contents, self.packages[program], repr(sorted(self.stamp.items())))
        return cache.directory() / f"{program}-{key}" / program

    def _toolchain(self) -> str:
        go = shutil.which("go")
        if go is None:
            raise CannotMake("Go is not installed")
        wanted = re.search(r"^go (\S+)$", self.source_files()[0].read_text("utf-8"), re.MULTILINE)
        assert wanted is not None
        there = _run([go, "env", "GOVERSION", "GOTOOLCHAIN"]).split()
        version, toolchain = there[0].removeprefix("go"), there[-1]
        if toolchain == "local" and _numbers(version) < _numbers(wanted[1]):
            raise CannotMake(f"Go {version} is too old, {wanted[1]} is needed")
        return go

    def _build(self, go: str, program: str, built: Path, tell: Tell) -> None:
        unfinished = built.parent.with_name(built.parent.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        # A copy, so that no build ever writes into the checkout.
        module = unfinished / "module"
        module.mkdir(parents=True)
        for name, text in self.sources().items():
            (module / name).write_bytes(text)
        environment = {
            # The compiler is many short processes: collected less often, a build takes a sixth less time.
            "GOGC": "400",
            **os.environ,
            "CGO_ENABLED": "0",
            "GOFLAGS": "-mod=readonly -buildvcs=false",
            "GOWORK": "off",
        }
        flags = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in self.stamp.items())])
        # What the linker drops need not be compiled: that spares some tenth of the time.
        compiled = "-gcflags=all=-dwarf=false"
        command = [go, "build", "-trimpath", compiled, "-ldflags", flags, "-o", str(unfinished / program)]
        began = time.monotonic()
        tell(f"{program}: building with {go}")
        _run([*command, self.packages[program]], module, environment, lambda line: tell(f"{program}: {line}"))
        shutil.rmtree(module)
        shutil.rmtree(built.parent, ignore_errors=True)
        unfinished.rename(built.parent)
        tell(f"{program}: built in {time.monotonic() - began:.0f} s")


def _run(
    command: Sequence[str],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    tell: Tell | None = None,
) -> str:
    """The output of Go. With `tell`, a line from time to time says that it still runs and how far it is."""
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    except OSError as error:
        raise CannotMake(f"{command[0]} does not start: {error}") from error
    assert process.stdout is not None
    output: list[str] = []
    over = threading.Event()

    def heartbeat(say: Tell) -> None:
        began = time.monotonic()
        while not over.wait(HEARTBEAT):
            fetched = sum(line.startswith("go: downloading") for line in output)
            say(f"{time.monotonic() - began:.0f} s, {fetched} modules fetched")

    if tell is not None:
        threading.Thread(target=heartbeat, args=(tell,), daemon=True).start()
    try:
        output.extend(process.stdout)
        process.wait()
    finally:
        over.set()
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
    if process.returncode != 0:
        lines = [line.strip() for line in output if not line.startswith("go: downloading")]
        raise CannotMake(f"`{' '.join(command[:3])}` failed: {' | '.join(lines[-3:])[:500]}")
    return "".join(output)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]
