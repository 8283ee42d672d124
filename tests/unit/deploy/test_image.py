"""The image's locks, layers and manifests; `tests/integration/deploy/test_image.py` builds and runs the whole."""

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from deploy.image.making import archive, locks, unpacking
from tests.conftest import REPOSITORY

IMAGE = REPOSITORY / "deploy" / "image"
EPOCH = 1_700_000_000


def test_debians_lock_holds_what_is_wanted_and_nothing_left_out() -> None:
    roots, left_out = locks.debian_roots(IMAGE / "debian.packages")
    names = [one.name for one in locks.debian_lock(IMAGE / "debian.lock")]
    assert names == sorted(set(names))
    assert set(roots) <= set(names)
    assert not left_out & set(names)


def test_a_line_of_a_lock_that_makes_no_sense_is_named(tmp_path: Path) -> None:
    lock = tmp_path / "debian.lock"
    lock.write_text("# a comment\n\ngit 1:2.39 amd64 0123\n")
    with pytest.raises(locks.BuildError, match=r"debian\.lock:3: expected"):
        locks.debian_lock(lock)


def test_what_runs_is_pinned_with_hashes_and_what_developers_need_is_not_there() -> None:
    found = {
        one.name: one
        for one in locks.running_packages(REPOSITORY / "requirements.lock", REPOSITORY / "pyproject.toml")
    }
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    for declared in project["dependencies"]:
        name = re.match(r"[\w.-]+", declared)
        assert name is not None
        assert name[0].replace(".", "-") in found
    assert all(one.hashes for one in found.values())
    assert {"yarl", "pydantic-core", "multidict"} <= found.keys()  # wanted by what is wanted
    assert not {"pytest", "mypy", "ruff", "matplotlib", "hypothesis"} & found.keys()


def test_a_dependency_that_is_not_pinned_is_named(tmp_path: Path) -> None:
    lock, project = tmp_path / "requirements.lock", tmp_path / "pyproject.toml"
    lock.write_text(
        "numpy==2.0 \\\n    --hash=sha256:" + "0" * 64 + "\n    # via koordpolicy (pyproject.toml)\n"
    )
    project.write_text(
        '[project]\ndependencies = ["numpy", "missing>=1"]\n[project.optional-dependencies]\ntracing = []\n'
    )
    with pytest.raises(locks.BuildError, match="does not pin missing; run `make lock`"):
        locks.running_packages(lock, project)


def fill(root: Path, names: list[str], time: int) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        file.chmod(0o755 if name.startswith("bin/") else 0o600)
        os.utime(file, (time, time))
    (root / "link").symlink_to("bin/tool")
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)


def test_a_layer_tells_nothing_of_the_machine_that_made_it(tmp_path: Path) -> None:
    names = ["bin/tool", "etc/passwd", "usr/lib/b.py", "usr/lib/a.py"]
    fill(tmp_path / "one", names, 1)
    fill(tmp_path / "other", names[::-1], 2)
    layer = archive.layer(tmp_path / "one", EPOCH)
    assert layer == archive.layer(tmp_path / "other", EPOCH)
    with tarfile.open(fileobj=io.BytesIO(layer)) as opened:
        entries = {one.name: one for one in opened}
    assert {(one.uid, one.gid, one.uname, one.mtime) for one in entries.values()} == {(0, 0, "", EPOCH)}
    assert {name: one.mode for name, one in entries.items() if one.isfile()} == {
        name: 0o755 if name == "bin/tool" else 0o644 for name in names
    }
    assert entries["link"].linkname == "bin/tool"
    assert entries["tmp"].mode == 0o1777


def test_an_archive_is_an_oci_layout_whose_digests_hold(tmp_path: Path) -> None:
    fill(tmp_path / "one", ["bin/tool"], 1)
    described = {
        "architecture": "amd64",
        "created": "1970-01-01T00:00:00Z",
        "name": "koordpolicy",
        "version": "1",
        "layers": ["one"],
        "annotations": {},
        "config": {"User": "65532:65532"},
    }
    target = tmp_path / "image.tar"
    archive.write_archive(archive.image([archive.layer(tmp_path / "one", 0)], described), target, 0)
    with tarfile.open(target) as opened:
        files = {one.name: opened.extractfile(one).read() for one in opened if one.isfile()}  # type: ignore[union-attr]

    def blob(described: dict[str, object]) -> bytes:
        digest = str(described["digest"]).removeprefix("sha256:")
        content = files[f"blobs/sha256/{digest}"]
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (digest, described["size"])
        return content

    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (named,) = json.loads(files["index.json"])["manifests"]
    manifest = json.loads(blob(named))
    config = json.loads(blob(manifest["config"]))
    (layer,) = manifest["layers"]
    plain = gzip.decompress(blob(layer))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(plain).hexdigest()}"]
    assert config["config"]["User"] == "65532:65532"


def test_a_package_cannot_write_outside_of_its_place(tmp_path: Path) -> None:
    bad = tmp_path / "bad-1-py3-none-any.whl"
    with zipfile.ZipFile(bad, "w") as written:
        written.writestr("../outside.py", "")
    with pytest.raises(locks.BuildError, match="leads out of its place"):
        unpacking.lay_out_wheel(bad, tmp_path / "packages")


def test_the_dockerfile_runs_what_the_archive_runs() -> None:
    text = (IMAGE / "Dockerfile").read_text("utf-8")
    code = (IMAGE / "making" / "__main__.py").read_text("utf-8")
    for variable in re.findall(r'"((?:PATH|LANG|PYTHON\w+)=[^"]*)"', code):
        assert variable in text
    assert 'ENTRYPOINT ["koordpolicy"]' in text
    assert "USER 65532:65532" in text
