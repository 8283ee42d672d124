import asyncio
import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.kube import snapshot
from koordpolicy.kube.errors import Forbidden, Gone, KubeError, NotFound, Unreachable
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import NAMESPACES, NODE_METRICS, NODES, PODS, Resource
from koordpolicy.kube.scrubbing import scrubbed_object
from koordpolicy.kube.snapshot import Snapshot, SnapshotError, read_snapshot, take_snapshot, write_snapshot

NOW = 1_767_225_600_123_456_789
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "web:1", "command": ["--password=hunter2"]}]},
}


def cluster_that_refuses(
    refusal: Callable[[Resource], KubeError | None] = lambda _resource: None,
) -> MemoryCluster:
    async def before(_method: str, resource: Resource) -> None:
        error = refusal(resource)
        if error is not None:
            raise error

    return MemoryCluster(Store(lambda: NOW / 10**9), before_request=before)


async def _filled(pods: int = 3) -> MemoryCluster:
    cluster = cluster_that_refuses()
    await cluster.create(NODES, {"metadata": {"name": "node-1"}, "status": {"capacity": {"cpu": "8"}}})
    for number in range(pods):
        pod = {**POD, "metadata": {**POD["metadata"], "name": f"web-{number}"}}
        await cluster.create(PODS, pod)
    return cluster


def taken(pods: int = 3) -> Snapshot:
    async def run() -> Snapshot:
        return await take_snapshot(await _filled(pods), NOW)

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["cluster.json", "cluster.json.gz"])
def test_reads_what_it_writes(tmp_path: Path, name: str) -> None:
    snapshot = taken()
    write_snapshot(snapshot, tmp_path / name)
    again = read_snapshot(tmp_path / name)
    assert again.digest == snapshot.digest
    assert again.taken == NOW
    assert again.taken_text == "2026-01-01T00:00:00Z"
    assert [pod["metadata"]["name"] for pod in again.pods] == ["web-0", "web-1", "web-2"]
    assert (tmp_path / name).stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_secrets_are_not_taken() -> None:
    assert "hunter2" not in json.dumps(taken().objects)


def test_all_pages_are_read() -> None:
    assert len(taken(pods=1100).pods) == 1100


def test_who_lives_on_the_loop_has_turns_while_much_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_SLICE", 0.0005)
    turns: list[int] = []
    taken_in = 0

    def counted(resource: Resource, obj: Any) -> Any:
        nonlocal taken_in
        taken_in += 1
        return scrubbed_object(resource, obj)

    monkeypatch.setattr(snapshot, "scrubbed_object", counted)

    async def run() -> None:
        cluster = await _filled(1000)

        async def other() -> None:
            while True:
                turns.append(taken_in)
                await asyncio.sleep(0)

        beside = asyncio.create_task(other())
        await take_snapshot(cluster, NOW)
        beside.cancel()

    asyncio.run(run())
    within = {at for at in turns if 1 < at < 1001}
    assert len(within) > 5


def test_what_the_cluster_does_not_serve_is_named() -> None:
    bare = cluster_that_refuses(lambda resource: NotFound("no such resource") if resource.custom else None)
    snapshot = asyncio.run(take_snapshot(bare, NOW))
    assert "nodemetrics.slo.koordinator.sh" in snapshot.absent
    assert snapshot.of(NODE_METRICS) == ()


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (Forbidden("namespaces is forbidden"), "ClusterRole `koordpolicy-snapshot`"),
        (NotFound("no such resource"), "does not serve namespaces"),
        (Unreachable("connection refused"), "namespaces cannot be listed: connection refused"),
        (Gone("too old"), "namespaces cannot be listed: too old"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_why(refusal: KubeError, words: str) -> None:
    refusing = cluster_that_refuses(lambda resource: refusal if resource == NAMESPACES else None)
    with pytest.raises(SnapshotError, match=words):
        asyncio.run(take_snapshot(refusing, NOW))


def test_a_list_whose_moment_was_forgotten_is_begun_anew() -> None:
    failures = iter([Gone("too old"), Gone("too old")])
    forgetful = cluster_that_refuses(lambda resource: next(failures, None) if resource == PODS else None)
    assert asyncio.run(take_snapshot(forgetful, NOW)).pods == []


def _whole(tmp_path: Path) -> dict[str, Any]:
    write_snapshot(taken(1), tmp_path / "a.json")
    whole: dict[str, Any] = json.loads((tmp_path / "a.json").read_text())
    return whole


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version 2"),
        ({"format": "other"}, "no snapshot"),
        ({"objects": []}, "damaged"),
        ({"objects": {"pods": [{}]}}, "damaged"),
        ({"objects": {"pods": {}}}, "damaged"),
        ({"objects": {}}, "changed after it was taken"),
        ({"takenNanoseconds": "now"}, "damaged"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    file = tmp_path / "b.json"
    file.write_text(json.dumps({**_whole(tmp_path), **change}))
    with pytest.raises(SnapshotError, match=words):
        read_snapshot(file)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"[1]", "no snapshot"),
        (b"\x00\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (gzip.compress(b"{}" * 100, mtime=0)[:20], "cannot be read"),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "b.json"
    file.write_bytes(content)
    with pytest.raises(SnapshotError, match=words):
        read_snapshot(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="No such file"):
        read_snapshot(tmp_path / "none.json")


def test_a_directory_that_is_not_there_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="cannot be written"):
        write_snapshot(Snapshot(NOW, {}), tmp_path / "none" / "a.json")


def test_a_small_file_that_becomes_large_is_refused_before_it_takes_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_MOST_BYTES", 64 << 20)
    file = tmp_path / "small.json.gz"
    file.write_bytes(gzip.compress(bytes(65 << 20), 9) * 8)
    tracemalloc.start()
    try:
        with pytest.raises(SnapshotError, match=r"has more than 67,108,864 bytes unpacked"):
            read_snapshot(file)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 << 20
