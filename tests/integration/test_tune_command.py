"""`koordpolicy tune`: a pack that is bad on purpose is improved, resumed, and refused where it cannot be."""

import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from koordpolicy import resources
from koordpolicy.cli.command import CANNOT_RUN, FINDINGS, OK
from koordpolicy.cli.main import main
from koordpolicy.cli.start import INTERRUPTED
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cli.tuning import evaluation, search

DAY = ("--generate", "2:20", "--batch", "40%", "--until", "2h", "--interval", "20m")
AIM = ("--maximise", "report.batch.coreHours", "--subject-to", "report.services.violationShare < 0.05")
BAD = """\
# Batch work gets next to nothing.
apiVersion: koordpolicy.io/v1alpha1
kind: Overcommit
metadata:
  name: bad
  annotations:
    koordpolicy.io/tunable: |
      parameters.cpuReclaim: 10% to 90% by 20%
spec:
  resource: batch
  parameters:
    cpuReclaim: 10%   # somebody was careful
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A bundle whose batch offer is far too small."""
    folder = tmp_path / "policies"
    folder.mkdir()
    for name in ("koordpolicy.yaml", "profiles.yaml"):
        shutil.copy(resources.examples() / "12-what-if" / "policies" / name, folder)
    (folder / "bad.yaml").write_text(BAD, encoding="utf-8")
    return folder


def tune(pack: Path, *flags: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["tune", str(pack), *DAY, *flags], Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


def check(pack: Path) -> int:
    return main(["check", str(pack)], Terminal(io.StringIO(), io.StringIO()))


def test_a_bad_pack_is_improved_within_its_budget(pack: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    told, patch, rollout = tmp_path / "told.json", tmp_path / "tuned.patch", tmp_path / "rollout.yaml"
    flags = ("--evidence", str(told), "--patch", str(patch), "--rollout", str(rollout))
    code, text, _ = tune(pack, *AIM, "--trials", "5", "--seeds", "1", "--confirm-seeds", "2", *flags)
    assert code == OK, text
    assert all(len(line) <= 80 for line in text.splitlines())
    said = " ".join(text.split())
    assert "kept: report.services.violationShare < 0.05 report.services.violationShare: " in said
    found = json.loads(told.read_text(encoding="utf-8"))
    (value,) = found["values"]
    assert value["before"] == "10%"
    assert len(found["trials"]) <= 5
    new = found["confirmation"]
    assert new["holds"]
    assert new["sure"]
    assert new["after"] > new["before"]
    assert set(new["seeds"]).isdisjoint(found["search"]["seeds"])
    assert (pack / "bad.yaml").read_text(encoding="utf-8") == BAD  # nobody asked to write
    subprocess.run(["git", "apply", str(patch)], cwd=tmp_path, check=True, timeout=30)
    changed = (pack / "bad.yaml").read_text(encoding="utf-8")
    assert changed == BAD.replace("cpuReclaim: 10%   #", f"cpuReclaim: {value['after']}   #")
    shutil.copy(rollout, pack)
    assert check(pack) == OK


def test_a_search_goes_on_where_it_was_interrupted(pack: Path, tmp_path: Path, monkeypatch: Any) -> None:
    study = str(tmp_path / "study")
    flags = (*AIM, "--seeds", "1", "--confirm-seeds", "1", "--study", study)
    real, asked = evaluation.evaluate, list[Any]()

    def evaluate(job: Any) -> Any:
        if len(asked) == 1:
            raise KeyboardInterrupt
        return counted(job)

    def counted(job: Any) -> Any:
        asked.append(job)
        return real(job)

    monkeypatch.setattr(search, "evaluate", evaluate)
    code, text, said = tune(pack, *flags, "--trials", "3")
    assert code == INTERRUPTED
    assert "1 trial" in text
    assert "--resume" in said
    monkeypatch.setattr(search, "evaluate", counted)
    code, _, said = tune(pack, *flags, "--trials", "3")
    assert (code, "--resume" in said) == (CANNOT_RUN, True)
    assert len(asked) == 1
    # It is better by the one new seed, which makes nothing sure: nothing is written unless that is said to be enough.
    patch, told = tmp_path / "tuned.patch", tmp_path / "told.md"
    written = ("--trials", "3", "--resume", "--write", "--patch", str(patch), "--evidence", str(told))
    code, text, _ = tune(pack, *flags, *written)
    said = " ".join(text.split())
    assert code == FINDINGS, text
    assert "3 trials" in text
    assert len(asked) <= 3
    for remedy in ("--confirm-seeds 5", "--resume asks without a new search", "--accept-unsure leaves"):
        assert remedy in said
    assert not patch.exists()
    assert (pack / "bad.yaml").read_text(encoding="utf-8") == BAD
    assert "not sure). Chance alone may have made that." in told.read_text(encoding="utf-8")
    code, text, said = tune(pack, *flags, *written, "-o", "json")
    assert (code, json.loads(text)["confirmation"]["sure"]) == (FINDINGS, False)
    assert "--accept-unsure leaves" in said
    code, text, _ = tune(pack, *flags, *written, "--accept-unsure")
    assert code == OK, text
    assert "as --accept-unsure says" in " ".join(text.split())
    assert patch.exists()
    assert (pack / "bad.yaml").read_text(encoding="utf-8") != BAD
    assert check(pack) == OK
    code, _, said = tune(pack, *flags, "--trials", "3", "--resume")
    assert (code, "its policies are not these" in said) == (CANNOT_RUN, True)


def test_one_job_searches_alike_each_time_and_two_search_as_well(pack: Path, tmp_path: Path) -> None:
    told = []
    for at, jobs in enumerate(("1", "1", "2")):
        file = tmp_path / f"{at}.json"
        few = ("--seeds", "1", "--confirm-seeds", "1", "--accept-unsure")
        flags = (*few, "--trials", "4", "--jobs", jobs)
        code, text, said = tune(pack, *AIM, *flags, "--evidence", str(file), "-o", "json")
        assert code == OK, text + said
        assert json.loads(text) == json.loads(file.read_text(encoding="utf-8"))
        told.append(json.loads(file.read_text(encoding="utf-8")))
        made = told[-1].pop("made")
        assert (made["seeds"], f"--jobs {jobs} " in made["command"]) == ([1, 2], True)
    assert told[0] == told[1]
    values = {
        one["values"]["Overcommit/bad:parameters.cpuReclaim"]: one["objective"] for one in told[0]["trials"]
    }
    for one in told[2]["trials"]:  # a choice is worth the same wherever it is simulated
        at_that = one["values"]["Overcommit/bad:parameters.cpuReclaim"]
        assert values.get(at_that, one["objective"]) == one["objective"]


def test_nothing_is_written_where_nothing_keeps_the_constraints(pack: Path, tmp_path: Path) -> None:
    patch = tmp_path / "tuned.patch"
    flags = ("--seeds", "1", "--trials", "2", "--patch", str(patch), "--write")
    impossible = ("--maximise", "1.0", "--subject-to", "report.pods.total < 0.0")
    code, text, _ = tune(pack, *impossible, *flags, "-o", "json")
    told = json.loads(text)
    assert (code, told["confirmation"], told["search"]["best"]) == (FINDINGS, None, None)
    assert told["trials"][0]["broken"] == {"report.pods.total < 0.0": 1}
    code, text, _ = tune(pack, *impossible, *flags)
    assert code == FINDINGS
    assert "Nothing that was tried keeps the constraints." in text
    assert not patch.exists()
    assert (pack / "bad.yaml").read_text(encoding="utf-8") == BAD


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("koordpolicy.io/tunable: |", "koordpolicy.io/other: |", "koordpolicy.io/tunable"),
        ("parameters.cpuReclaim: 10%", "parameters.cpuReclam: 10%", "cpuReclaim"),
    ],
)
def test_marks_that_cannot_be_tuned_are_told_before_anything_takes_time(
    pack: Path, before: str, after: str, said: str
) -> None:
    file = pack / "bad.yaml"
    file.write_text(BAD.replace(before, after), encoding="utf-8")
    code, _, told = tune(pack, *AIM)
    assert code == CANNOT_RUN
    assert said in told


def test_a_file_that_is_no_search_is_refused(pack: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.write_text("no journal\n", encoding="utf-8")
    code, _, told = tune(pack, *AIM, "--study", str(study), "--resume")
    assert code == CANNOT_RUN
    assert "is no journal of a search" in told
    assert study.read_text(encoding="utf-8") == "no journal\n"


MARK = "Overcommit/bad:parameters.cpuReclaim"


def _edited(lines: list[str], at: str, **keys: Any) -> list[str]:
    """The lines of a journal, those that speak of `at` with other keys."""
    return [json.dumps(json.loads(one) | keys) if at in one else one for one in lines]


def test_a_foreign_or_broken_journal_gives_no_value(pack: Path, tmp_path: Path) -> None:
    study, patch = tmp_path / "study", tmp_path / "tuned.patch"
    flags = (*AIM, "--seeds", "1", "--confirm-seeds", "1", "--trials", "2", "--patch", str(patch))
    code, text, said = tune(pack, *flags, "--study", str(study))
    assert code in (OK, FINDINGS), text + said
    patch.unlink(missing_ok=True)
    lines = study.read_text(encoding="utf-8").splitlines()
    param, end, fixed = '"param_name"', '"datetime_complete"', '"fixed_params"'
    wide = json.dumps(
        {"name": "IntDistribution", "attributes": {"log": False, "step": 1, "low": 0, "high": 1000}}
    )
    beyond = _edited(lines, param, param_value_internal=9.0, distribution=wide)
    asked = [one for one in lines if one not in lines[3:]]  # nothing but the first choice that is to be tried
    cases: dict[str, tuple[list[str], str]] = {
        "no question": ([one for one in lines if '"question"' not in one], "holds another search"),
        "another range": (beyond, "the range of trial"),
        "another value": (_edited(lines, param, param_value_internal=9.0), "a value of trial"),
        "asked for": (_edited(asked, fixed, system_attrs={"fixed_params": {MARK: 9}}), "a value of trial 0"),
        "a better result": (_edited(lines, end, values=[1e9]), "the result of trial"),
        "no values": ([one for one in lines if '"values":[' not in one or end in one], "the result of trial"),
        "two results": (_edited(lines, end, values=[1.0, 2.0]), "the result of trial"),
        "two directions": (_edited(lines, '"directions"', directions=[2, 2]), "holds another search"),
        "no constraints": (
            [one for one in lines if '"question"' in one or '"constraints"' not in one],
            "the state of trial",
        ),
        "too deep": ([*lines, "[" * 100_000], "no journal of a search"),
        "no operation": ([*lines, "3", "{}"], "no journal of a search"),
        "half a line": ([*lines, lines[-1][:9]], "no journal of a search"),
    }
    evil = tmp_path / "evil"
    for what, (changed, why) in cases.items():
        evil.write_text("\n".join(changed) + "\n", encoding="utf-8")
        code, text, said = tune(pack, *flags, "--study", str(evil), "--resume", "--write")
        assert code == CANNOT_RUN, what
        assert f"`{evil}`" in said, (what, said)
        assert why in said, (what, said)
        assert "name another file" in said, (what, said)
    assert not patch.exists()
    assert (pack / "bad.yaml").read_text(encoding="utf-8") == BAD
    code, text, said = tune(pack, *flags, "--study", str(study), "--resume")
    assert code in (OK, FINDINGS), text + said  # as it was, it is gone on with


def test_ends_of_a_range_that_policies_refuse_are_told_before_anything_takes_time(pack: Path) -> None:
    text = BAD.replace("kind: Overcommit", "kind: CPUSuppress").replace("  resource: batch\n", "")
    text = text.replace("cpuReclaim: 10% to 90%", "threshold: -5% to 95%").replace(
        "cpuReclaim: 10%", "threshold: 65%"
    )
    (pack / "bad.yaml").write_text(text, encoding="utf-8")
    code, _, told = tune(pack, *AIM)
    assert code == CANNOT_RUN
    assert "with the least values of all marks the policies do not compile" in told
    assert "KP406" in told


def test_a_search_ends_when_its_time_is_up_and_goes_on_from_there(pack: Path, tmp_path: Path) -> None:
    study = str(tmp_path / "study")
    flags = (*AIM, "--seeds", "1", "--confirm-seeds", "1", "--trials", "3", "--study", study)
    code, text, _ = tune(pack, *flags, "--minutes", "0.0001")  # the first trial takes longer than that
    assert code == FINDINGS, text  # what there is was tried, and nothing else
    assert "the time is up, after 1 of 3 trials" in text
    assert f"--study{study}and--resumegoon" in "".join(text.split())  # however its lines are broken
    file = tmp_path / "told.json"
    code, text, _ = tune(
        pack, *flags, "--minutes", "10", "--resume", "--accept-unsure", "--evidence", str(file)
    )
    assert code == OK, text
    assert "the time is up" not in text
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [one["number"] for one in found["trials"]] == [0, 1, 2]
    assert found["search"]["outOfTime"] is False


def test_without_a_study_it_says_what_would_have_kept_it(pack: Path) -> None:
    flags = ("--seeds", "1", "--trials", "3", "--minutes", "0.0001")
    code, text, _ = tune(pack, *AIM, *flags)
    assert (code, "--study FILE, which keeps a search" in " ".join(text.split())) == (FINDINGS, True)
    code, text, _ = tune(pack, *AIM, *flags, "-o", "json")
    told = json.loads(text)["search"]
    assert (code, told["outOfTime"], told["interrupted"]) == (FINDINGS, True, False)


def test_trials_meet_faults_and_are_judged_by_what_they_cost(pack: Path, tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text("faults:\n- nodeLoss: {at: 20m, nodes: {count: 1}}\n", encoding="utf-8")
    flags = ("--seeds", "1", "--trials", "2", "--faults", str(faults), "-o", "json")
    lost = ("--minimise", "report.faults.lostPods + report.faults.refused")
    code, text, said = tune(pack, *lost, *flags)
    assert code in (OK, FINDINGS), said
    trials = json.loads(text)["trials"]
    assert [one["objective"] > 0 for one in trials] == [True, True]
    code, _, said = tune(pack, *lost, "--trials", "1")
    assert (code, "--faults FILE" in said) == (CANNOT_RUN, True)
    faults.write_text("faults:\n- nodeLos: {at: 20m}\n", encoding="utf-8")
    code, _, said = tune(pack, *lost, *flags)
    assert (code, "did you mean `nodeLoss`" in said) == (CANNOT_RUN, True), said
