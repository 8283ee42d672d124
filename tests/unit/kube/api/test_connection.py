"""Where the API server is and who we are: from kubeconfigs, plugins and pods."""

import base64
import json
import os
import ssl
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.kube.api import ConfigurationError, Connection
from koordpolicy.kube.api.proxies import excepts
from tests.unit.kube.api.scripted import kubeconfig

SERVER = "https://10.0.0.1:6443/some/prefix/"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        for spelling in (name, name.upper()):
            monkeypatch.delenv(spelling, raising=False)


def load(folder: Path, user: Any = None, server: str = SERVER, **cluster: Any) -> Connection:
    return Connection.load(kubeconfig(folder, server, user, **cluster))


def test_a_token_and_an_address(tmp_path: Path) -> None:
    connection = load(tmp_path)
    access = connection.access
    assert (access.server, access.authorization) == ("https://10.0.0.1:6443/some/prefix", "Bearer secret")
    assert (access.server_name, access.proxy) == ("", "")
    assert access.tls is not None
    assert access.tls.verify_mode is ssl.CERT_REQUIRED
    assert access.tls.check_hostname
    assert str(tmp_path) in connection.origin
    assert "secret" not in repr(access)


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({"token": "t"}, "Bearer t"),
        ({"username": "me", "password": "pass"}, "Basic " + base64.b64encode(b"me:pass").decode()),
        ({}, ""),
    ],
)
def test_ways_to_say_who_we_are(tmp_path: Path, user: Any, authorization: str) -> None:
    connection = load(tmp_path, user={"as": "x"} if user == {} else user)
    assert connection.access.authorization == authorization


def test_a_token_file_is_read_beside_the_kubeconfig_and_again(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    connection = load(tmp_path, {"tokenFile": "token"})
    assert connection.access.authorization == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    assert connection.refresh().authorization == "Bearer one"
    assert connection.reload().authorization == "Bearer two"
    assert connection.access.authorization == "Bearer two"


def test_no_encryption_needs_no_trust(tmp_path: Path) -> None:
    assert load(tmp_path, server="http://127.0.0.1:8001").access.tls is None


def test_trust_may_be_waived_and_names_may_differ(tmp_path: Path) -> None:
    told: dict[str, Any] = {"insecure-skip-tls-verify": True, "tls-server-name": "kube.example.org"}
    access = load(tmp_path, **told).access
    assert access.tls is not None
    assert access.tls.verify_mode is ssl.CERT_NONE
    assert access.server_name == "kube.example.org"


def test_proxies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://outside:3128")
    assert load(tmp_path).access.proxy == "http://outside:3128"
    assert load(tmp_path, server="http://127.0.0.1:8001").access.proxy == ""
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8,.svc")
    assert load(tmp_path).access.proxy == ""
    assert load(tmp_path, **{"proxy-url": "http://inside:3128"}).access.proxy == "http://inside:3128"
    with pytest.raises(ConfigurationError, match="only http and https proxies"):
        load(tmp_path, **{"proxy-url": "socks5://inside:1080"})


def plugin(folder: Path, script: str) -> dict[str, Any]:
    file = folder / "plugin"
    file.write_text("#!/bin/sh\n" + script)
    file.chmod(0o755)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(file),
            "env": [{"name": "WHO", "value": "robot"}],
        }
    }


def credential(**status: str) -> str:
    text = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return json.dumps(text)


def test_a_plugin_gives_a_token_and_is_asked_again_when_it_ran_out(tmp_path: Path) -> None:
    old = credential(token="$WHO-$(wc -l < count)", expirationTimestamp="2001-01-01T00:00:00Z")
    escaped = old.replace('"', '\\"')
    user = plugin(tmp_path, f'cd {tmp_path}; echo x >> count; echo "{escaped}"')
    connection = load(tmp_path, user)
    first = connection.access.authorization
    assert first.startswith("Bearer robot-")
    assert connection.refresh().authorization > first


def test_a_plugin_is_not_asked_again_while_its_token_is_good(tmp_path: Path) -> None:
    new = credential(token="t-$(wc -l < count)", expirationTimestamp="2999-01-01T00:00:00Z")
    escaped = new.replace('"', '\\"')
    connection = load(tmp_path, plugin(tmp_path, f'cd {tmp_path}; echo x >> count; echo "{escaped}"'))
    assert connection.refresh().authorization == "Bearer t-1"
    assert connection.reload().authorization == "Bearer t-2"


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", "echo '{}'", "exec /no/such/program"])
def test_a_plugin_that_fails_is_named(tmp_path: Path, script: str) -> None:
    with pytest.raises(ConfigurationError, match="plugin` gave no credentials"):
        load(tmp_path, plugin(tmp_path, script))


CONTEXT = "current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("{", ""),
        ("[]", ""),
        ("a: b", "current-context"),
        ("{current-context: x, contexts: [], clusters: [], users: []}", "x"),
        (f"{{{CONTEXT}, clusters: []}}", "c"),
        (f"{{{CONTEXT}, clusters: [{{name: c, cluster: {{}}}}]}}", "server"),
        (f"{{{CONTEXT}, clusters: [{{name: c, cluster: {{server: 'https://s'}}}}], users: []}}", "user `u`"),
        (
            f"{{{CONTEXT}, clusters: [{{name: c, cluster: {{server: 'https://s', certificate-authority: /no/file}}}}]}}",
            "/no/file",
        ),
        ("\x00", ""),
    ],
)
def test_a_bad_kubeconfig_is_named_and_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "broken"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as error:
        Connection.load(str(file))
    assert str(file) in str(error.value)
    assert said in str(error.value)


def test_contexts_are_chosen_and_files_merged(tmp_path: Path) -> None:
    one = kubeconfig(tmp_path, "https://one:1")
    two = tmp_path / "two"
    two.write_text(
        json.dumps(
            {
                "contexts": [{"name": "y", "context": {"cluster": "d", "user": "u"}}],
                "clusters": [{"name": "d", "cluster": {"server": "https://two:2"}}],
            }
        )
    )
    paths = f"{tmp_path / 'nowhere'}:{one}:{two}"
    assert Connection.load(paths).access.server == "https://one:1"
    other = Connection.load(paths, "y")
    assert (other.access.server, other.access.authorization) == ("https://two:2", "Bearer secret")
    assert other.origin.endswith("context y")
    with pytest.raises(ConfigurationError, match="z"):
        Connection.load(paths, "z")


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no kubeconfig at"):
        Connection.load(str(tmp_path / "nowhere"))


@pytest.fixture
def in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service account where pods have it, and no kubeconfig; gives the folder of its files."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("of-the-pod")
    authorities = ssl.get_default_verify_paths().cafile
    if not authorities or not Path(authorities).exists():
        pytest.skip("this machine has no file of certificate authorities")
    (tmp_path / "ca.crt").write_bytes(Path(authorities).read_bytes())
    return tmp_path


def test_in_a_pod_its_service_account_is_used(in_a_pod: Path) -> None:
    connection = Connection.load(environment=os.environ, account=in_a_pod)
    assert connection.access.server == "https://[fd00::1]:443"
    assert connection.access.authorization == "Bearer of-the-pod"
    assert connection.origin == "the pod's service account"
    trust = connection.access.tls
    assert trust is not None
    assert trust.get_ca_certs()
    (in_a_pod / "token").write_text("renewed\n")
    assert connection.refresh().authorization == "Bearer renewed"
    assert connection.access.tls is trust
    (in_a_pod / "token").write_text("again")
    assert connection.reload().authorization == "Bearer again"
    assert connection.access.tls is not trust


def test_in_a_pod_proxies_are_used_and_left_out_as_the_environment_says(
    in_a_pod: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://outside:3128")
    assert Connection.load(environment=os.environ, account=in_a_pod).access.proxy == "http://outside:3128"
    monkeypatch.setenv("NO_PROXY", "fd00::/8")
    assert Connection.load(environment=os.environ, account=in_a_pod).access.proxy == ""


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("token", None, "No such file"),
        ("token", " \n", "token is empty"),
        ("token", "\udcff", "it is no text"),
        ("ca.crt", None, "No such file"),
        ("ca.crt", "", "ca.crt is empty"),
        ("ca.crt", "nonsense", "the pod's service account: "),
    ],
)
def test_a_service_account_that_is_not_whole_is_named(
    in_a_pod: Path, file: str, text: str | None, said: str
) -> None:
    (in_a_pod / file).unlink()
    if text is not None:
        (in_a_pod / file).write_text(text, errors="surrogateescape")
    with pytest.raises(ConfigurationError, match=said):
        Connection.load(environment=os.environ, account=in_a_pod)


@pytest.mark.parametrize(
    ("exceptions", "server", "excepted"),
    [
        ("", "https://10.1.2.3:6443", False),
        ("*", "https://x", True),
        ("10.1.2.3", "https://10.1.2.3:6443", True),
        (" 10.0.0.0/8 ,x", "https://10.1.2.3:6443", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.0.0.0/8", "https://ten.example.org", False),
        ("fd00::/8", "https://[fd00::1]:443", True),
        (".svc", "https://kubernetes.default.svc:443", True),
        ("default.svc", "https://kubernetes.Default.SVC", True),
        ("svc", "https://notsvc", False),
        ("kubernetes:443", "https://kubernetes:443", True),
        ("kubernetes:443", "https://kubernetes:6443", False),
        (",.,", "https://x", False),
    ],
)
def test_which_servers_a_list_excepts_from_proxies(exceptions: str, server: str, excepted: bool) -> None:
    assert excepts(exceptions, server) is excepted


def test_outside_of_a_pod_and_without_a_kubeconfig_it_says_what_to_do(
    in_a_pod: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(
        ConfigurationError,
        match=r"^there is no cluster to ask: .*KUBERNETES_SERVICE_HOST is not set.*Name a kubeconfig by `--kubeconfig FILE`",
    ):
        Connection.load(environment=os.environ)
    with pytest.raises(ConfigurationError, match="no kubeconfig to find context `x` in"):
        Connection.load(context="x", environment=os.environ)
