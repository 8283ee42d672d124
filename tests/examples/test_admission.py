"""The fifth example as its README tells it: its commands print what it shows, and a cluster does what they said."""

import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.integration.webhooks.site import WebhookSite, make_webhook_site
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

EXAMPLE = Path(__file__).parents[2] / "examples" / "05-admission"
README = EXAMPLE / "README.md"
_CONSOLE = re.compile(r"^```console\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_TEXT = re.compile(r"^```text\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_PACK = re.compile(r"(koordinator/\S+?):\d+:\d+")
"""Where something stands in the built-in pack changes with the pack."""
_DIGEST = re.compile(r"(sha256:|rules )[0-9a-f]{12}")


def printed(command: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == "koordpolicy"
    out = io.StringIO()
    main(arguments, Terminal(out, out))
    shown = _DIGEST.sub(r"\1...", _PACK.sub(r"\1:...", out.getvalue().rstrip()))
    return "".join(f"{line.rstrip()}\n" for line in shown.splitlines())


def test_the_commands_print_what_the_readme_shows(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(EXAMPLE)
    text = README.read_text(encoding="utf-8")

    def played(block: re.Match[str]) -> str:
        command = block["body"].splitlines()[0].removeprefix("$ ")
        return f"```console\n$ {command}\n{printed(command)}```"

    shown = _CONSOLE.sub(played, text)
    if request.config.getoption("--update-goldens"):
        README.write_text(shown, encoding="utf-8")
    else:
        assert shown == text


@pytest.fixture
def site(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[WebhookSite]:
    need(pytestconfig, "etcd", "kube-apiserver", "kubectl")
    with DeployedServer(tmp_path / "cluster") as server:
        folder = tmp_path / "site"
        folder.mkdir()
        yield make_webhook_site(server.access, folder)


def test_a_cluster_does_what_the_readme_says(site: WebhookSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)
    admitted, refused = (
        block["body"].strip().splitlines() for block in _TEXT.finditer(README.read_text("utf-8"))
    )
    for file in EXAMPLE.joinpath("policies").glob("*.yaml"):
        site.write(file.name, file.read_text("utf-8"))
    code, _, err = site.kubectl("apply", "-f", "cluster.yaml")
    assert code == 0, err
    with site.serving("m1"):
        site.eventually(
            lambda: any("etl" in json.dumps(one) for one in site.entries("mutating")), "the profile"
        )
        code, out, err = site.kubectl("apply", "-f", "nightly.yaml")
        assert code == 0, err
        assert [*err.strip().splitlines(), *out.strip().splitlines()] == admitted
        made = json.loads(site.kubectl("get", "pod", "nightly", "-n", "etl", "-o", "json")[1])
        code, out, err = site.kubectl("apply", "-f", "careless.yaml")
        assert code == 1
        assert refused[0] in err
    told = json.loads(printed("koordpolicy explain pod -f nightly.yaml -f cluster.yaml -p policies -o json"))
    labels = {
        one["path"]: one["value"]
        for step in told["changes"]
        for one in step["lines"]
        if "labels" in one["path"]
    }
    assert labels == {
        f'metadata.labels["{key}"]': value
        for key, value in made["metadata"]["labels"].items()
        if key != "app"
    }
    assert made["spec"]["priority"] == 5000
    assert made["spec"]["containers"][0]["resources"]["requests"]["kubernetes.io/batch-cpu"] == "2k"
