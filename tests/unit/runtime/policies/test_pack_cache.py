"""The built-in pack, compiled once for many commands: always the same answer, and nothing read that others wrote."""

import os
import pickle
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from koordpolicy.graph import Compilation, Compiler, Layer
from koordpolicy.runtime.policies import pack_cache
from koordpolicy.runtime.policies.pack_cache import SWITCH, cache_directory, pack_remembering
from koordpolicy.runtime.policies.packs import BARE, OWN, find_pack
from koordpolicy.runtime.trial.client import start_trials
from koordpolicy.runtime.trial.limits import TrialLimits
from koordpolicy.runtime.trial.verdict import TrialRequest
from koordpolicy.runtime.trial.wire import unpacked
from koordpolicy.source import read_tree

EXAMPLES = Path(__file__).parents[4] / "examples"
BUNDLES = ("02-tune-one-pool", "03-own-filter")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(SWITCH, raising=False)
    found = cache_directory()
    assert found is not None
    assert found.is_relative_to(tmp_path)
    return found


def layer(bundle: str, change: str = "") -> Layer:
    files = read_tree([str(EXAMPLES / bundle)]).files
    before, _, after = change.partition("=>")
    return Layer(
        "bundle", {file: text.replace(before, after) if change else text for file, text in files.items()}
    )


def outcome(compilation: Compilation) -> tuple[object, ...]:
    graph = compilation.graph
    units = [(unit.document.file, unit.document.data, unit.spec, unit.layer) for unit in compilation.units]
    rules = [
        (rule.id, rule.rank, rule.span, rule.match, rule.value, rule.parameters, rule.variables)
        for decision in (() if graph is None else graph.decisions.values())
        for rule in decision.rules
    ]
    return list(compilation.found), units, rules, graph and graph.digest


_PLAIN = Compiler(find_pack)
"""A compiler that nothing on disk has a part in."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a first command keeps; its own result is what it is without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("first")))
        patch.delenv(SWITCH, raising=False)
        own = layer(BUNDLES[0])
        assert outcome(pack_remembering().compile(own)) == outcome(_PLAIN.compile(own))
        found = cache_directory()
    assert found is not None
    (file,) = found.iterdir()
    return file


@pytest.fixture
def file(kept: Path, directory: Path) -> Path:
    """The same in a directory of the test's own."""
    shutil.copy2(kept, directory / kept.name)
    return directory / kept.name


@pytest.mark.parametrize("change", ["", "spec:=>spek:", "node.=>nude.", "80%=>800%"])
@pytest.mark.parametrize("bundle", BUNDLES)
def test_with_it_everything_is_as_without(file: Path, bundle: str, change: str) -> None:
    own = layer(bundle, change)
    assert outcome(pack_remembering().compile(own)) == outcome(_PLAIN.compile(own))


def test_what_is_there_is_taken(directory: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(*_: object) -> None:
        raise AssertionError("the pack was compiled again")

    monkeypatch.setattr(pack_cache, "Compiler", again)
    compiler = Compiler(find_pack)
    pack = find_pack("koordinator")
    assert pack is not None
    compiler.learn(pack_cache.results_of(pack, directory))
    compiler.compile(layer(BUNDLES[0]))
    made = [
        key
        for key in compiler.made
        if isinstance(key, tuple) and key[0] in ("read", "schema", "parse", "check")
    ]
    assert 0 < len(made) < 20


def test_what_is_checked_elsewhere_has_a_file_of_its_own_without_checks(directory: Path, file: Path) -> None:
    own = Layer(OWN, dict([BARE]))
    expected = pack_remembering().compile(own).graph
    for _ in range(2):
        compilation = pack_remembering(checked=True).compile(own, checked=True)
        assert compilation.graph is not None
        assert expected is not None
        assert compilation.graph.digest == expected.digest
    (checked,) = set(directory.iterdir()) - {file}
    assert checked.stat().st_size < file.stat().st_size
    compiler = pack_remembering(checked=True)
    compiler.compile(own, checked=True)
    assert len(compiler.made) < 20, "nearly all of it was there"


@pytest.mark.parametrize("checked", [True, False])
def test_what_is_not_kept_yet_is_made_beforehand_by_another_process(
    directory: Path, *, checked: bool
) -> None:
    script = (
        "import sys; from koordpolicy.runtime.policies.pack_cache import keep_beforehand; import koordpolicy.graph.compiler;"
        f"keep_beforehand(checked={checked}); sys.exit('koordpolicy.graph.passes.cost' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    (made,) = directory.iterdir()
    before = made.stat().st_mtime_ns
    compilation = pack_remembering(checked=checked).compile(Layer(OWN, dict([BARE])), checked=checked)
    assert compilation.graph is not None
    subprocess.run([sys.executable, "-c", script], check=True)
    assert [made.stat().st_mtime_ns] == [before] == [file.stat().st_mtime_ns for file in directory.iterdir()]


def test_trials_take_what_commands_have_kept_and_hand_it_on(directory: Path) -> None:
    own = layer(BUNDLES[0])

    def tried() -> tuple[float, str]:
        trials = start_trials(TrialLimits())
        assert trials is not None
        with trials:
            verdict = trials.attempt(TrialRequest(own.files))
        assert verdict.reason is None
        live = Compiler(find_pack)
        for part in unpacked(verdict.learned):
            live.learn(part)
        graph = live.compile(own, checked=True).graph
        assert graph is not None
        assert not live.made, "what the trial had of the pack is all there"
        return verdict.cpu, graph.digest

    anew, digest = tried()
    assert not list(directory.iterdir()), "a trial, which has limits, keeps nothing itself"
    pack_remembering().compile(own)
    assert pack_cache.kept_results()
    spared, same = tried()
    assert same == digest
    assert spared < anew


def test_another_program_or_another_pack_has_another_file(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_cache, "_STARTED", sys.maxsize)  # as if each were another process
    pack = Layer("koordinator", dict([BARE]))  # whatever it holds
    pack_cache.results_of(pack, directory)
    pack_cache.results_of(
        Layer("koordinator", {**pack.files, "koordinator/more.yaml": "# more\n"}), directory
    )
    assert len(list(directory.iterdir())) == 2
    program = tmp_path / "program"
    program.mkdir()
    (program / "__init__.py").write_text("")
    monkeypatch.setattr("koordpolicy.__file__", str(program / "__init__.py"))
    pack_cache.results_of(pack, directory)
    (program / "module.py").write_text("a = 1\n")
    pack_cache.results_of(pack, directory)
    assert len(list(directory.iterdir())) == 3, "the oldest are forgotten"


class Trap:
    """What a pickle of somebody else's may do."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(Path(os.environ["XDG_CACHE_HOME"]) / "sprung"),)


def test_a_program_that_was_replaced_while_it_runs_keeps_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the old program makes must not be what the new one finds under its own key."""
    monkeypatch.setattr(pack_cache, "_STARTED", 0)
    own = layer(BUNDLES[0])
    assert outcome(pack_remembering().compile(own)) == outcome(_PLAIN.compile(own))
    assert not list(directory.iterdir())


def spoilt_writable(file: Path) -> None:
    file.write_bytes(pickle.dumps({"a": Trap()}))
    file.chmod(0o622)


def spoilt_link(file: Path) -> None:
    other = file.parent.parent / "other"
    other.write_bytes(pickle.dumps({"a": Trap()}))
    other.chmod(0o600)
    file.unlink()
    file.symlink_to(other)


def spoilt_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def spoilt_cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1000])


def spoilt_empty(file: Path) -> None:
    file.write_bytes(b"")


def spoilt_garbage(file: Path) -> None:
    file.write_bytes(b"\x80\x05garbage")


@pytest.mark.parametrize(
    "spoil", [spoilt_writable, spoilt_link, spoilt_pipe, spoilt_cut, spoilt_empty, spoilt_garbage]
)
def test_what_is_spoilt_is_made_anew(directory: Path, file: Path, spoil: object) -> None:
    assert callable(spoil)
    own = layer(BUNDLES[0])
    spoil(file)
    assert outcome(pack_remembering().compile(own)) == outcome(_PLAIN.compile(own))
    assert not (directory.parents[1] / "sprung").exists()
    (file,) = directory.iterdir()
    status = file.lstat()
    assert stat.S_ISREG(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600


def test_a_directory_that_others_may_write_is_left_alone(directory: Path) -> None:
    directory.chmod(0o777)
    assert cache_directory() is None
    pack_remembering().compile(layer(BUNDLES[0]))
    assert list(directory.iterdir()) == []


def test_a_directory_that_is_a_link_is_left_alone(directory: Path) -> None:
    directory.rename(directory.with_name("elsewhere"))
    directory.symlink_to(directory.with_name("elsewhere"))
    assert cache_directory() is None


@pytest.mark.parametrize(
    ("name", "value"), [(SWITCH, "off"), ("XDG_CACHE_HOME", "/dev/null"), ("XDG_CACHE_HOME", "/proc/none")]
)
def test_it_can_be_off(directory: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert cache_directory() is None
    assert pack_remembering().compile(layer(BUNDLES[0])).graph is not None
