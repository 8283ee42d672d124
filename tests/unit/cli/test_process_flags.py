"""The flags that all long-running commands share."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.flags.process import add_process_flags
from koordpolicy.cli.process import settings_of
from koordpolicy.runtime.component import Settings
from koordpolicy.runtime.http.authentication import Authentication
from koordpolicy.runtime.http.serving import Endpoint
from koordpolicy.runtime.tls import Tls


def given(*arguments: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_process_flags(parser)
    return settings_of(parser.parse_args(["--instance", "m1", *arguments]))


def test_without_flags_it_is_the_built_in_pack_in_the_usual_namespace() -> None:
    assert given() == Settings(http=Endpoint("--http", "127.0.0.1", 8080), instance="m1")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--policies", "/p"], {"policies": "/p"}),
        (["--policies-from-cluster"], {"policies_from_cluster": True}),
        (["--http", "127.0.0.1:0"], {"http": Endpoint("--http", "127.0.0.1", 0)}),
        (["--http", "[::1]:9"], {"http": Endpoint("--http", "::1", 9)}),
        (["--http", "off"], {"http": None}),
        (["--no-leader-elect"], {"leader_elect": False}),
        (["--no-policy-tests"], {"policy_tests": False}),
        (["--namespace", "ops", "--context", "c"], {"namespace": "ops", "context": "c"}),
        (
            ["--decision-log", "-", "--decision-log-every", "1"],
            {"decision_log": "-", "decision_log_every": 1},
        ),
        (
            ["--tls-cert-file", "a", "--tls-private-key-file", "b", "--tls-client-ca-file", "c"],
            {"http": Endpoint("--http", "127.0.0.1", 8080, Tls(Path("a"), Path("b"), Path("c")))},
        ),
        (
            ["--http", ":9", "--bearer-token-file", "t", "--delegated-auth"],
            {"http": Endpoint("--http", "", 9, None, Authentication((), Path("t"), True))},
        ),
        (
            ["--http", ":9", "--http-anonymous-auth"],
            {"http": Endpoint("--http", "", 9, None, Authentication(anonymous_reads=True))},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_flags_become_settings(arguments: list[str], expected: dict[str, Any]) -> None:
    settings = given(*arguments)
    assert {name: getattr(settings, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--http", "8080"], "--http takes"),
        (["--http", ":99999"], "--http takes"),
        (["--decision-log-every", "0"], "from 1"),
        (["--tls-cert-file", "a"], "belong together"),
        (["--tls-client-ca-file", "a"], "needs --tls-cert-file"),
        (["--tls-client-names", "a"], "needs --tls-client-ca-file"),
        (["--http", ":²"], "--http takes"),
        (["--http", ":" + "1" * 5000], "--http takes"),
        (["--state-dir", "/dev/null/state"], "--state-dir: /dev/null/state cannot be made"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(CannotRunError) as refusal:
        given(*arguments)
    assert message in str(refusal.value)


def test_policies_come_from_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        given("--policies", "/p", "--policies-from-cluster")
    assert "not allowed with" in capsys.readouterr().err
