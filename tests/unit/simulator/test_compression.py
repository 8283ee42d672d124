"""Compressed files of workloads."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from koordpolicy.kube.snapshot import Snapshot, write_snapshot
from koordpolicy.simulator.traces import compression, read_workload, rows
from koordpolicy.simulator.workload import WorkloadError
from tests.unit.simulator.test_broken_cells import WHOLE
from tests.unit.simulator.test_traces import NODE, POD

Pack = Callable[[bytes], bytes]
PACKS: dict[str, Pack] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
LINES = "\n".join(json.dumps(one) for one in (NODE, POD))


@pytest.mark.parametrize("suffix", PACKS)
@pytest.mark.parametrize(
    ("name", "nodes", "pods"),
    [
        ("x.csv", WHOLE["nodes"], WHOLE["pods"]),
        ("x.json", json.dumps([NODE, POD]), json.dumps([NODE, POD])),
        ("x.jsonl", LINES, LINES),
        ("x.yaml", LINES.replace("\n", "\n---\n"), LINES.replace("\n", "\n---\n")),
    ],
)
def test_they_are_read_as_what_they_hold(
    tmp_path: Path, suffix: str, name: str, nodes: str, pods: str
) -> None:
    found = []
    for end, pack in (("", bytes), (suffix, PACKS[suffix])):
        files = [tmp_path / f"{part}-{name}{end}" for part in ("nodes", "pods")]
        for file, text in zip(files, (nodes, pods), strict=True):
            file.write_bytes(pack(text.encode()))
        workload = read_workload(files[0], files[1])
        found.append((workload.nodes, workload.arrivals, workload.objects))
    assert found[0] == found[1]


def test_the_first_bytes_say_it_and_not_the_name(tmp_path: Path) -> None:
    packed, plain = tmp_path / "nodes.csv", tmp_path / "pods.csv.gz"
    packed.write_bytes(gzip.compress(WHOLE["nodes"].encode()))
    plain.write_text(WHOLE["pods"])
    assert len(read_workload(packed, plain).arrivals) == 2


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress], ids=["bzip2", "xz"])
def test_a_snapshot_may_be_compressed_anew(tmp_path: Path, pack: Pack) -> None:
    write_snapshot(Snapshot(0, {"nodes": [NODE], "pods": [POD]}), tmp_path / "cluster.json")
    packed = tmp_path / f"cluster.json.{'bz2' if pack is bz2.compress else 'xz'}"
    packed.write_bytes(pack((tmp_path / "cluster.json").read_bytes()))
    assert len(read_workload(packed, packed).arrivals) == 1


def archive(text: bytes) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as tar:
        entry = tarfile.TarInfo("nodes.csv")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    return whole.getvalue()


@pytest.mark.parametrize(
    ("name", "pack", "says"),
    [
        (
            "n.csv.zst",
            lambda text: b"\x28\xb5\x2f\xfd" + text,
            "compressed by Zstandard, .* first: `zstd -d ",
        ),
        ("n.csv.lz4", lambda text: b"\x04\x22\x4d\x18" + text, "compressed by LZ4, .* first: `lz4 -d "),
        ("n.zip", lambda text: b"PK\x03\x04" + text, "a ZIP archive, .* first: `unzip "),
        ("n.7z", lambda text: b"7z\xbc\xaf\x27\x1c" + text, "a 7-Zip archive, .* first: `7z x "),
        ("n.tgz", archive, "an archive of files; unpack it first: `tar -xf "),
        ("n.csv.gz", archive, "an archive of files; unpack it first: `tar -xf "),
        ("n.csv.gz", lambda text: gzip.compress(text)[:-9], "cannot be unpacked, get it anew"),
        ("n.csv.gz", lambda text: gzip.compress(text)[:-8] + b"\0" * 8, "cannot be unpacked, get it anew"),
        ("n.csv.xz", lambda text: lzma.compress(text)[:-9], "cannot be unpacked, get it anew"),
        ("n.csv.gz", lambda text: gzip.compress(b"\xff" + text), "not UTF-8 at byte 0"),
        (
            "n.tsv.gz",
            gzip.compress,
            "unknown format; files end with .csv, .json, .jsonl, .yaml, .yml, compressed",
        ),
    ],
)
def test_what_cannot_be_unpacked_is_told_with_the_remedy(
    tmp_path: Path, name: str, pack: Pack, says: str
) -> None:
    file, pods = tmp_path / name, tmp_path / "pods.csv"
    file.write_bytes(pack(WHOLE["nodes"].encode()))
    pods.write_text(WHOLE["pods"])
    with pytest.raises(WorkloadError, match=f"{name}: .*{says}"):
        read_workload(file, pods)


def test_more_than_memory_holds_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MAX_BYTES", 1 << 20)
    file = tmp_path / "n.json.gz"
    file.write_bytes(gzip.compress(b" " * (1 << 21)))
    with pytest.raises(WorkloadError, match=r"n\.json\.gz: larger than 1 MiB"):
        read_workload(file, file)


@pytest.mark.parametrize(
    ("text", "says"),
    [("\n" * 200, "more than 100 empty lines by then"), ("x" * 2000, "more than 1,000 characters")],
)
def test_lines_that_are_no_rows_end_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    monkeypatch.setattr(rows, "MAX_ROWS", 100)
    monkeypatch.setattr(rows, "MAX_LINE", 1000)
    file, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    file.write_text(WHOLE["nodes"])
    head = WHOLE["pods"].splitlines()[0]
    pods.write_text(f"{head}\n{text}\n")
    with pytest.raises(WorkloadError, match=says):
        read_workload(file, pods)
