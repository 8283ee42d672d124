"""`koordpolicy check --native`: beside the findings, which rules need no webhook, and what keeps the others back."""

import io
import json
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.runtime.policies.pack_cache import pack_remembering

DOCUMENTS = (
    {"kind": "PolicyBundle", "metadata": {"name": "ours"}, "spec": {"extends": []}},
    {"kind": "AdmissionRule", "metadata": {"name": "kept"}, "spec": {"require": {"cel": "pod.name != 'x'"}}},
    *(
        {"kind": "AdmissionRule", "metadata": {"name": name}, "spec": {"require": {"cel": "!quota.isParent"}}}
        for name in ("one", "two")
    ),
    {
        "kind": "ColocationProfile",
        "metadata": {"name": "some"},
        "spec": {"probability": "5%", "schedulerName": "s"},
    },
    {"kind": "ColocationProfile", "metadata": {"name": "off"}, "spec": {"enabled": False}},
)
TOLD = """\
API servers can decide 1 of 4 rules and profiles in use by themselves:
  AdmissionRule/kept
ColocationProfile/some stays with the webhook (policies.yaml:7:93):
  it is applied to a share of the pods, and an API server's policies draw no numbers
2 stay with the webhook: it reads `quota.isParent`, which the object does not say
  AdmissionRule/one, AdmissionRule/two
"""


@pytest.mark.parametrize(("output", "where"), [("text", "out"), ("json", "err")])
def test_it_is_told_beside_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, where: str
) -> None:
    head = {"apiVersion": "koordpolicy.io/v1alpha1"}
    (tmp_path / "koordpolicy.yaml").write_text(json.dumps({**head, **DOCUMENTS[0]}), encoding="utf-8")
    text = "\n---\n".join(json.dumps({**head, **one}) for one in DOCUMENTS[1:])
    (tmp_path / "policies.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out, err)
    code = main(("check", "--native", "-o", output), terminal, pack_remembering())
    assert code == 0  # it is a note: what stays with the webhook works all the same
    said = {"out": out.getvalue(), "err": err.getvalue()}
    assert " ".join(TOLD.split()) in " ".join(said[where].split())  # whatever the width
