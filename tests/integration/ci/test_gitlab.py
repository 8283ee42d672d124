"""The scripts of the GitLab snippet, run as its runner runs them; GitLab itself is not to be had here."""

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY
from tests.integration.ci.conftest import HOSTILE, SLIP, Sample, harmless
from tests.parts.forges import OURS, Forge

SNIPPET: dict[str, Any] = YAML(typ="safe").load(
    REPOSITORY / "deploy" / "gitlab" / "koordpolicy.gitlab-ci.yml"
)


def runs(sample: Sample, job: str, **environment: str) -> tuple[int, str]:
    """All lines of a job's script, ending with the first that fails."""
    script = "\n".join(("set -eo pipefail", *SNIPPET[job]["script"]))
    ran = sample.run(
        "bash", "--noprofile", "--norc", "-c", script, KOORDPOLICY_PATHS="policies", **environment
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_good_policies_pass_with_empty_reports(sample: Sample) -> None:
    assert runs(sample, "koordpolicy check")[0] == 0
    assert json.loads((sample.root / "gl-code-quality-report.json").read_text()) == []
    assert ET.parse(sample.root / "koordpolicy.xml").getroot().get("failures") == "0"


def test_a_slip_fails_and_is_reported(sample: Sample) -> None:
    sample.write(**{"policies/night.yaml": SLIP})
    code, output = runs(sample, "koordpolicy check")
    assert code == 1
    assert "KP305" in output
    [found] = json.loads((sample.root / "gl-code-quality-report.json").read_text())
    assert found["check_name"] == "KP305"
    assert found["severity"] == "critical"
    assert found["location"] == {"path": "policies/night.yaml", "lines": {"begin": 10}}
    assert found["description"]
    assert found["fingerprint"]


def test_reports_are_those_that_the_job_writes() -> None:
    check = SNIPPET["koordpolicy check"]
    written = " ".join(check["script"])
    assert all(f"> {file}" in written for file in check["artifacts"]["reports"].values())


def test_a_merge_request_is_compared(sample: Sample) -> None:
    base = sample.run("git", "rev-parse", "HEAD").stdout.strip()
    night = (sample.root / "policies/night.yaml").read_text()
    test = (sample.root / "policies/night.test.yaml").read_text()
    sample.commit(
        **{
            "policies/night.yaml": night.replace("80%", "85%"),
            "policies/night.test.yaml": test.replace("80%", "85%"),
        }
    )
    code, output = runs(sample, "koordpolicy diff", CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
    assert code == 0
    assert "| 80% | **85%** |" in output
    assert "| 80% | **85%** |" in (sample.root / "koordpolicy-diff.md").read_text()
    day = "--generate 1:4 --until 10m --interval 10m --seeds 1"
    code, output = runs(
        sample, "koordpolicy diff", CI_MERGE_REQUEST_DIFF_BASE_SHA=base, KOORDPOLICY_SIMULATE=day
    )
    assert code == 0, output
    assert "**Simulated: " in (sample.root / "koordpolicy-diff.md").read_text()


@pytest.mark.parametrize("forge", ["gitlab"], indirect=True)
def test_a_revision_that_does_not_compile_is_commented_on_and_fails(sample: Sample, forge: Forge) -> None:
    base = sample.run("git", "rev-parse", "HEAD").stdout.strip()
    job = {**forge.variables(sample.root.parent), "CI_MERGE_REQUEST_DIFF_BASE_SHA": base}
    job |= {"KOORDPOLICY_COMMENT_TOKEN": OURS, "KOORDPOLICY_SIMULATE": ""}
    name = f"policies/{HOSTILE}.yaml"
    sample.commit(**{name: SLIP.replace("name: night", "name: other") + "/close: 1\n"})
    code, output = runs(sample, "koordpolicy diff", **job)
    assert code == 2
    [one] = forge.comments
    assert "error[KP" in one["body"]
    assert "error[KP" in output
    assert harmless(one["body"]), one["body"]
    (sample.root / name).unlink()
    sample.commit()
    assert runs(sample, "koordpolicy diff", **job)[0] == 0
    assert [one["body"].split("\n")[1][:21] for one in forge.comments] == ["**Nothing changes** f"]


def test_without_a_token_the_difference_is_an_artifact_alone(sample: Sample) -> None:
    base = sample.run("git", "rev-parse", "HEAD").stdout.strip()
    given = {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "KOORDPOLICY_SIMULATE": ""}
    code, output = runs(sample, "koordpolicy diff", **given)
    assert code == 0, output
    assert (
        "**Nothing changes**"
        in (sample.root / SNIPPET["koordpolicy diff"]["artifacts"]["paths"][0]).read_text()
    )
