"""`koordpolicy explain node`: a record of a node's kernel files for people, from a file and from an agent."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.parts.http_answers import answering

GROUP = f"kubepods/besteffort/pod{'0' * 36}/{'c' * 64}"
RULE = {
    "decision": "ContainerHook/batch.container.cpuRequest",
    "file": "agent/batch.yaml",
    "line": 40,
    "column": 5,
}
RECORD: dict[str, Any] = {
    "node": "node-1",
    "pods": 3,
    "revision": "abc",
    "dryRun": True,
    "usage": {"cpu": 1200, "memory": 4096},
    "files": [
        {
            "file": f"/sys/fs/cgroup/cpu/{GROUP}/cpu.shares",
            "group": GROUP,
            "now": "1024",
            "wanted": 512,
            "outcome": "planned",
            "reason": "ContainerHook for default/a-pod-with-a-name-that-is-quite-long-and-goes-on-and-on",
            "problem": "",
            "rules": [RULE],
        },
        {
            "file": "/proc/sys/vm/min_free_kbytes",
            "group": "",
            "now": "67584",
            "wanted": 67584,
            "outcome": "equal",
            "reason": "SystemTuning",
            "problem": "the kernel says no",
            "rules": [],
        },
    ],
    "evictions": [{"pod": "default/crawl", "reason": "BEMemoryEvict"}],
    "notes": ["one note"],
    "troubles": {"processors": "gone"},
}
PAGE = """\
node node-1, 3 pods, policies abc
uses 1200m CPU, 4Ki memory

the node
  /proc/sys/vm/min_free_kbytes = 67584
    because  SystemTuning
    but      the kernel says no

kubepods/besteffort/pod0000000000000000…cccccccccccccccccccccccccccccccccccccccc
  cpu.shares = 512 (planned)
    now      1024
    because  ContainerHook for default/a-pod-with-a-name-that-is-quite-long-and-
             goes-on-and-on
    by       ContainerHook/batch.container.cpuRequest, agent/batch.yaml:40:5

pods that would go
  default/crawl for BEMemoryEvict

notes
  one note

what is wrong
  processors: gone
"""


def explain(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["explain", *words], Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def agent() -> Iterator[str]:
    said = json.dumps(RECORD).encode()
    with answering(lambda path, _: (200 if path == "/node" else 404, said)) as url:
        yield url


def test_a_saved_record_and_an_agent_tell_the_same_in_80_columns(agent: str, tmp_path: Path) -> None:
    saved = tmp_path / "node.json"
    saved.write_text(json.dumps(RECORD))
    for words in (("--record", str(saved)), ("--agent", agent)):
        code, page, _ = explain("node", *words)
        assert (code, page) == (0, PAGE)
        assert max(map(len, page.splitlines())) <= 80
        code, told, _ = explain("node", *words, "--output", "json")
        assert (code, json.loads(told)) == (0, RECORD)


def test_what_the_kernel_holds_is_told_and_what_was_asked_for(tmp_path: Path) -> None:
    saved = tmp_path / "node.json"
    clamped = {**RECORD["files"][0], "now": "0", "wanted": 1_000_000, "held": "100000", "outcome": "written"}
    saved.write_text(json.dumps({**RECORD, "files": [clamped, {**RECORD["files"][1], "held": None}]}))
    code, page, _ = explain("node", "--record", str(saved))
    assert code == 0
    assert "cpu.shares = 100000 (written)\n    asked    1000000" in page
    assert "min_free_kbytes = 67584\n    because" in page


def test_the_fact_hints_at_the_kernel() -> None:
    code, page, _ = explain("node")
    assert code == 0
    assert "node --agent [URL]`, or `--record FILE`" in page
    code, page, _ = explain("node.usage")
    assert "--agent" not in page


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("no JSON", "no record of a node"),
        ("[]", "is a JSON object"),
        ('{"node": "n"}', "`usage` is missing"),
        (json.dumps({**RECORD, "files": [{}]}), "`files[0]`"),
        (json.dumps({**RECORD, "files": 1}), "`files` is missing"),
    ],
)
def test_what_is_no_record_is_refused(said: str, problem: str, tmp_path: Path) -> None:
    saved = tmp_path / "node.json"
    saved.write_text(said)
    code, _, told = explain("node", "--record", str(saved))
    assert code == 2
    assert problem in " ".join(told.split())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("node", "--record", "/nowhere"), "cannot be read"),
        (("node", "--agent", "ftp://x"), "takes a URL"),
        (("node", "--agent", "http://127.0.0.1:9"), "no agent answers"),
        (("node", "--agent", "http://x", "--record", "y"), "give one of"),
        (("pod", "a", "--record", "x"), "are for `koordpolicy explain node`"),
    ],
)
def test_what_cannot_be_asked(words: tuple[str, ...], problem: str) -> None:
    code, _, told = explain(*words)
    assert code == 2
    assert problem in " ".join(told.split())
