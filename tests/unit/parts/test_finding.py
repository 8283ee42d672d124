"""Where parts are looked for, in which order, and what is told when one cannot be had."""

import re
from pathlib import Path

import pytest

from tests.parts import cache, table
from tests.parts.__main__ import main
from tests.parts.cache import Tell
from tests.parts.debian import DebianPackages, Installed
from tests.parts.finding import CannotMake, Missing, Part, new_enough, version_of
from tests.parts.golang import GoModule


def program(folder: Path, name: str, says: str, code: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    file.chmod(0o755)
    return file


class Maker:
    """Makes a program that says its version, or refuses."""

    def __init__(self, folder: Path, refusal: str = "") -> None:
        self.folder = folder
        self.refusal = refusal
        self.calls = 0

    def says(self) -> str:
        return "made here"

    def made(self, name: str) -> Path | None:
        return self.folder / name if (self.folder / name).exists() else None

    def make(self, name: str, tell: Tell) -> Path:
        self.calls += 1
        if self.refusal:
            raise CannotMake(self.refusal)
        tell("making")
        return program(self.folder, name, "v3.2.1")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of its own: nothing of the part on PATH, an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def given(machine: Path, monkeypatch: pytest.MonkeyPatch, refusal: str = "") -> Maker:
    maker = Maker(machine / "made", refusal)
    part = Part("some-part", "a test", ("--version",), (3, 2), maker)
    monkeypatch.setattr(table, "PARTS", {part.name: part})
    return maker


def test_assets_come_before_the_path(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maker = given(machine, monkeypatch)
    program(machine / "bin", "some-part", "v3.9")
    program(machine / "assets", "some-part", "v3.4")
    assert table.find("some-part").origin == "PATH"
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(machine / "assets"))
    found = table.find("some-part")
    assert (found.origin, found.version, found.path) == (
        "KUBEBUILDER_ASSETS",
        "3.4",
        machine / "assets" / "some-part",
    )
    assert maker.calls == 0


@pytest.mark.parametrize(("says", "code"), [("v3.1.9", 0), ("v3.3", 1)], ids=["too old", "does not run"])
def test_what_does_not_serve_is_made(
    machine: Path, monkeypatch: pytest.MonkeyPatch, says: str, code: int
) -> None:
    maker = given(machine, monkeypatch)
    program(machine / "bin", "some-part", says, code)
    told: list[str] = []
    assert table.find("some-part", told.append).origin == "made here"
    assert table.find("some-part", told.append).path == machine / "made" / "some-part"
    assert (maker.calls, told) == (1, ["making"])


def test_a_failure_is_told_and_not_repeated(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maker = given(machine, monkeypatch, "Go is not installed")
    for _ in range(2):
        with pytest.raises(Missing, match="no some-part: Go is not installed"):
            table.find("some-part")
    assert maker.calls == 1
    with pytest.raises(Missing, match="Go is not installed"):
        table.prepare("some-part")
    assert maker.calls == 2
    maker.refusal = ""
    table.prepare("some-part", lambda line: None)
    assert cache.failure(cache.directory() / "some-part") == ""
    assert table.find("some-part").version == "3.2.1"


def test_the_command_tells_what_is_missing(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    maker = given(machine, monkeypatch, "there is no network")
    assert main(["--list"]) == 1
    assert "- not there yet; would be made here" in capsys.readouterr().out
    assert main([]) == 1
    assert main(["--keep-going"]) == 0
    assert "some-part                - there is no network" in capsys.readouterr().out
    maker.refusal = ""
    assert main([]) == 0
    assert "3.2.1" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["no-such-part"])


def test_without_go_the_reason_says_so(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(machine / "bin"))
    module = GoModule("kubernetes", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
    with pytest.raises(CannotMake, match="Go is not installed"):
        module.make("kwok", lambda line: None)
    (machine / "bin").mkdir(exist_ok=True)
    go = machine / "bin" / "go"
    go.write_text("#!/bin/sh\necho go1.20.1\necho local\n")
    go.chmod(0o755)
    with pytest.raises(CannotMake, match=r"Go 1\.20\.1 is too old, 1\.26\.0 is needed"):
        module.make("kwok", lambda line: None)


def test_a_build_that_fails_leaves_nothing_and_says_why(machine: Path) -> None:
    go = machine / "bin" / "go"
    go.parent.mkdir()
    go.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = env ]; then echo go1.99.0; echo local; exit 0; fi\n'
        "echo 'go: downloading example.org/module v1.0.0'\necho 'module cannot be reached'\nexit 1\n"
    )
    go.chmod(0o755)
    module = GoModule("kubernetes", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
    with pytest.raises(CannotMake, match=r"failed: module cannot be reached$"):
        module.make("kwok", lambda line: None)
    assert module.made("kwok") is None


def test_without_apt_the_reason_says_so(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(machine / "bin"))
    with pytest.raises(CannotMake, match="there is no apt-get"):
        DebianPackages(("etcd-server",), "usr/bin/etcd").make("etcd", lambda line: None)
    with pytest.raises(CannotMake, match="apt-get install git"):
        Installed("git").make("git", lambda line: None)


@pytest.mark.parametrize(
    ("version", "at_least", "serves"),
    [
        ("3.4.23", (3, 4), True),
        ("3.10", (3, 4), True),
        ("3.3.99", (3, 4), False),
        ("2.9", (3, 4), False),
        ("unknown", (3, 4), True),
        ("1.0", (), True),
    ],
)
def test_versions(version: str, at_least: tuple[int, ...], serves: bool) -> None:
    assert new_enough(version, at_least) is serves


def test_a_version_is_read_from_what_a_program_prints(tmp_path: Path) -> None:
    assert version_of(program(tmp_path, "one", "etcd Version: 3.4.23"), ()) == "3.4.23"
    assert version_of(program(tmp_path, "two", "usage: two"), ()) == "unknown"
    assert version_of(program(tmp_path, "helps", "helps 1.7.0", 2), (), 2) == "1.7.0"
    with pytest.raises(CannotMake):
        version_of(program(tmp_path, "ends", "ends 1.7.0"), (), 2)
    with pytest.raises(CannotMake, match="cannot open shared object"):
        version_of(program(tmp_path, "three", "libreadline.so: cannot open shared object", 127), ())


def test_pinned_modules_name_no_host() -> None:
    for maker in {id(part.maker): part.maker for part in table.PARTS.values()}.values():
        if isinstance(maker, GoModule):
            for file in maker.source_files():
                assert not re.search(r"\b(https?|git)://|GOPROXY|GOSUMDB", file.read_text()), file


def test_a_module_borrows_source_and_keeps_its_own() -> None:
    own, borrowing = table.PARTS["cel-go"].maker, table.PARTS["kubernetes-cel"].maker
    assert isinstance(own, GoModule)
    assert isinstance(borrowing, GoModule)
    mine, theirs = own.sources(), borrowing.sources()
    assert mine.keys() == theirs.keys() >= {"go.mod", "go.sum", "main.go", "values.go", "libraries.go"}
    assert b'"cel.dev/cel-go/cel"' in mine["main.go"]
    assert theirs["main.go"] == mine["main.go"].replace(b"cel.dev/cel-go", b"github.com/google/cel-go")
    assert mine["libraries.go"] != theirs["libraries.go"]
    assert list(table.PARTS["kwok"].maker.sources()) == ["go.mod", "go.sum"]  # type: ignore[attr-defined]
