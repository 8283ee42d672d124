"""`examples/07-training-jobs`: one job within one spine, the other told why not, as its README says."""

import io
import json
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

EXAMPLE = Path(__file__).parents[2] / "examples" / "07-training-jobs"
COMMAND = ["simulate", "--nodes", "cluster.yaml", "--pods", "jobs.yaml", "-p", "policies"]


def called(*arguments: str) -> str:
    out = io.StringIO()
    assert main([*COMMAND, *arguments], Terminal(out, out)) == 0, out.getvalue()
    return out.getvalue()


def test_a_job_is_whole_or_absent_and_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    text = called("--explain", "default/llama-master-0")
    _, _, block = EXAMPLE.joinpath("README.md").read_text("utf-8").partition("```text\n")
    said = block.partition("```")[0]
    assert said in text
    pods = json.loads(called("--output", "json"))["pods"]
    assert (pods["scheduled"], pods["pending"]) == (6, 6)
