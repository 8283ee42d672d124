"""`examples/08-gpu-pool`: shares on one card, whole cards in a partition, and a job that finds what was kept for it, as its README says."""

import io
import json
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

EXAMPLE = Path(__file__).parents[2] / "examples" / "08-gpu-pool"
COMMAND = ["simulate", "--nodes", "cluster.yaml", "--pods", "pods.yaml", "-p", "policies"]


def called(*arguments: str) -> str:
    out = io.StringIO()
    assert main([*COMMAND, *arguments], Terminal(out, out)) == 0, out.getvalue()
    return out.getvalue()


def test_what_is_kept_for_the_night_is_there_at_night(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    text = called("--explain", "default/train-3")
    _, _, block = EXAMPLE.joinpath("README.md").read_text("utf-8").partition("```text\n")
    assert block.partition("```")[0] in text
    pods = json.loads(called("--output", "json"))["pods"]
    assert (pods["scheduled"], pods["pending"]) == (7, 1)
