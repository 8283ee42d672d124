"""The scripts of the GitHub Action, run as the runner runs them; the runner itself is not to be had here."""

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY
from tests.integration.ci.conftest import HOSTILE, SLIP, UNTELLABLE, Sample, harmless
from tests.parts.forges import OURS, Forge

FOLDER = REPOSITORY / "deploy" / "github"
ACTION: dict[str, Any] = YAML(typ="safe").load(FOLDER / "action.yml")
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}


def runs(sample: Sample, step: str, **environment: str) -> tuple[int, str, Path]:
    """A step's script with `bash -eo pipefail`, as a runner does: exit code, output, the step's outputs."""
    folder = sample.root.parent / "runner"
    folder.mkdir(exist_ok=True)
    outputs, summary = folder / "outputs", folder / "summary"
    given = {
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_STEP_SUMMARY": str(summary),
        "RUNNER_TEMP": str(folder),
        **environment,
    }
    ran = sample.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[step]["run"], **given)
    return ran.returncode, ran.stdout + ran.stderr, folder


def check(sample: Sample, **environment: str) -> tuple[int, str, Path]:
    return runs(sample, "Check", **{"PATHS": "policies", "STRICT": "false", "SARIF": "", **environment})


def test_the_action_is_complete() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(step.get("shell") == "bash" for step in STEPS.values())
    for step in STEPS.values():
        assert "${{" not in step["run"], "inputs in a script could become part of it"


def test_the_example_gives_only_known_inputs() -> None:
    workflow = YAML(typ="safe").load(FOLDER / "workflow.yml")
    [used] = [step for step in workflow["jobs"]["policies"]["steps"] if "koordpolicy" in step.get("uses", "")]
    assert set(used["with"]) <= set(ACTION["inputs"])


def test_good_policies_pass(sample: Sample) -> None:
    code, output, _ = check(sample)
    assert (code, output) == (0, "")


def test_a_slip_is_annotated_and_fails(sample: Sample) -> None:
    sample.write(**{"policies/night.yaml": SLIP})
    code, output, _ = check(sample)
    assert code == 1
    assert output.startswith("::error file=policies/night.yaml,line=10,col=5,")


def test_sarif_is_written_whatever_is_found(sample: Sample) -> None:
    assert check(sample, SARIF="out.sarif")[0] == 0
    assert json.loads((sample.root / "out.sarif").read_text())["runs"][0]["results"] == []
    sample.write(**{"policies/night.yaml": SLIP})
    assert check(sample, SARIF="out.sarif")[0] == 1
    [found] = json.loads((sample.root / "out.sarif").read_text())["runs"][0]["results"]
    assert found["ruleId"] == "KP305"


def test_what_cannot_run_is_no_finding(sample: Sample) -> None:
    (sample.root / "empty").mkdir()
    code, output, _ = check(sample, PATHS="empty", SARIF="out.sarif")
    assert code == 2
    assert "no policy file" in output


@pytest.mark.parametrize("different", [True, False])
def test_a_pull_request_is_compared(sample: Sample, different: bool) -> None:
    sample.run("git", "checkout", "--quiet", "-b", "change")
    night = (sample.root / "policies/night.yaml").read_text()
    test = (sample.root / "policies/night.test.yaml").read_text()
    to = "85%" if different else "80%"
    sample.commit(
        **{
            "policies/night.yaml": "# A remark.\n" + night.replace("80%", to),
            "policies/night.test.yaml": test.replace("80%", to),
        }
    )
    code, output, folder = runs(sample, "Compare", PATHS="policies", BASE="main", SNAPSHOT="", SIMULATE="")
    assert (code, output) == (0, "")
    outputs = (folder / "outputs").read_text()
    assert f"different={'true' if different else 'false'}\n" in outputs
    summary = (folder / "summary").read_text()
    assert ("| 80% | **85%** |" in summary) == different
    assert f"summary={folder / 'koordpolicy-diff.md'}" in outputs


def test_both_revisions_are_simulated_where_that_is_asked_for(sample: Sample) -> None:
    sample.run("git", "checkout", "--quiet", "-b", "change")
    night = (sample.root / "policies/night.yaml").read_text()
    sample.commit(**{"policies/night.yaml": night.replace("80%", "85%")})
    day = "--generate 1:4 --until 10m --interval 10m --seeds 1"
    code, output, folder = runs(sample, "Compare", PATHS="policies", BASE="main", SNAPSHOT="", SIMULATE=day)
    assert code == 0, output
    assert "**Simulated: " in (folder / "summary").read_text()


def compare(sample: Sample, base: str = "main") -> tuple[int, str, dict[str, str], str]:
    """Exit code, output, what the step hands on, and the job's summary."""
    code, output, folder = runs(sample, "Compare", PATHS="policies", BASE=base, SNAPSHOT="", SIMULATE="")
    said = [folder / "outputs", folder / "summary"]
    handed, summary = (file.read_text("utf-8") if file.exists() else "" for file in said)
    return code, output, dict(line.split("=", 1) for line in handed.splitlines()), summary


def test_what_cannot_be_told_is_in_the_summary(sample: Sample) -> None:
    sample.commit(**UNTELLABLE["before"])
    sample.run("git", "checkout", "--quiet", "-b", "change")
    sample.commit(**UNTELLABLE["after"])
    code, _, outputs, summary = compare(sample)
    assert (code, outputs["different"]) == (0, "unknown")
    assert "gave up" in summary
    assert Path(outputs["summary"]).read_text("utf-8") == summary


@pytest.mark.parametrize("forge", ["github"], indirect=True)
def test_a_revision_that_does_not_compile_is_commented_on_and_fails(sample: Sample, forge: Forge) -> None:
    """Whatever branches and files are called, and whatever stands in them."""
    assert sample.run("git", "checkout", "--quiet", "-b", HOSTILE).returncode == 0
    speaks = SLIP.replace("name: night", 'name: "```\\n@all"')
    sample.commit(**{f"policies/{HOSTILE}.yaml": speaks + "# ```\n# @all\n/close: 1\n"})
    job = forge.variables(sample.root.parent)
    for _ in range(2):
        code, output, outputs, summary = compare(sample)
        assert (code, "different" in outputs) == (2, False)
        assert "do not compile" in output
        assert "do not compile" in summary
        given = {**job, "KOORDPOLICY_COMMENT_TOKEN": OURS, "SUMMARY": outputs["summary"]}
        assert runs(sample, "Comment", **given)[0] == 0
    [one] = forge.comments
    assert "error[KP" in one["body"]
    assert harmless(one["body"]), one["body"]
    assert list(sample.root.rglob("hacked")) == []


@pytest.mark.parametrize("forge", ["github"], indirect=True)
def test_names_are_harmless_in_the_comment(sample: Sample, forge: Forge) -> None:
    assert sample.run("git", "branch", HOSTILE).returncode == 0
    sample.run("git", "checkout", "--quiet", "-b", "change")
    night = (sample.root / "policies/night.yaml").read_text()
    name = f"policies/{HOSTILE}.yaml"
    sample.commit(**{name: night.replace("night", "other")})
    code, output, outputs, _ = compare(sample, HOSTILE)
    assert (code, outputs["different"]) == (0, "true"), output
    given = {"KOORDPOLICY_COMMENT_TOKEN": OURS, "SUMMARY": outputs["summary"]}
    assert runs(sample, "Comment", **forge.variables(sample.root.parent), **given)[0] == 0
    [one] = forge.comments
    assert "@all" in one["body"]
    assert harmless(one["body"]), one["body"]


def test_the_comment_is_written_where_a_step_failed_and_never_for_a_fork() -> None:
    condition = " ".join(STEPS["Comment"]["if"].split())
    assert condition.startswith("${{ always() && inputs.comment == 'true'")
    assert "github.event.pull_request.head.repo.full_name == github.repository" in condition
    holders = [name for name, step in STEPS.items() if "inputs.token" in str(step)]
    assert holders == ["Comment"]


def test_a_base_that_is_not_there_fails(sample: Sample) -> None:
    code, output, _ = runs(sample, "Compare", PATHS="policies", BASE="origin/main", SNAPSHOT="", SIMULATE="")
    assert code == 2
    assert "origin/main" in output


def test_inputs_are_no_code(sample: Sample) -> None:
    """A file name that a pull request chose must not be run."""
    code, output, folder = check(sample, PATHS='policies $(touch "$RUNNER_TEMP/hacked") `touch x`')
    assert code == 1
    assert "does not exist" in output
    assert not (folder / "hacked").exists()
    assert not (sample.root / "x").exists()
