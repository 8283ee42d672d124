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


def test_who_may_take_from_a_reservation_is_told_as_its_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    page = EXAMPLE.joinpath("RESERVATIONS.md").read_text("utf-8")
    walked = [block.partition("```")[0].splitlines() for block in page.split("```text\n")[1:]]
    assert len(walked) == 2
    for command, *lines in walked:
        out = io.StringIO()
        assert main(command.removeprefix("$ koordpolicy ").split(), Terminal(out, out)) == 0, out.getvalue()
        said = out.getvalue().splitlines()
        assert [line for line in lines if line != "..." and line not in said] == []


def test_the_policy_of_that_page_lets_teams_alone_take(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(EXAMPLE)
    _, _, block = EXAMPLE.joinpath("RESERVATIONS.md").read_text("utf-8").partition("```yaml\n")
    tmp_path.joinpath("teams.yaml").write_text(block.partition("```")[0], "utf-8")
    picture = EXAMPLE.joinpath("reserved.yaml").read_text("utf-8")
    assert picture.count("labels: {app: shop}}\nspec") == 1
    picture = picture.replace("labels: {app: shop}}\nspec", "labels: {app: shop, team: b}}\nspec")
    tmp_path.joinpath("cluster.yml").write_text(picture, "utf-8")
    out = io.StringIO()
    command = [
        "explain",
        "pod",
        "shop-0",
        "-f",
        str(tmp_path / "cluster.yml"),
        "-p",
        str(tmp_path / "teams.yaml"),
    ]
    assert main(command, Terminal(out, out)) == 0, out.getvalue()
    assert "default/shop-0 finds no node" in out.getvalue()
