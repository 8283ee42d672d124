"""Kubeconfigs without anything special are read as the official client reads them, which the others are left to."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.kube.api.access import Access
from koordpolicy.kube.api.kubeconfig import kubeconfig as official
from koordpolicy.kube.api.plain_kubeconfig import plain_kubeconfig
from tests.unit.kube.api.scripted import kubeconfig
from tests.unit.kube.api.test_trust import data, papers

__all__ = ["papers"]

SERVER = "https://10.0.0.1:6443/prefix/"
YAML = """\
apiVersion: v1
kind: Config
preferences: {}
current-context: here
contexts:
- name: here
  context: {cluster: c, user: u, namespace: n}
- name: there
  context:
    cluster: d
clusters:
- name: c
  cluster:
    server: https://c:6443
    extensions: [{name: x, extension: {provider: minikube.sigs.k8s.io}}]
- name: d
  cluster:
    server: http://d:8080/
    tls-server-name: e
users:
- name: u
  user: {token: t, as: other}
"""
MORE = """\
contexts: [{name: here, context: {cluster: nowhere}}, {name: elsewhere, context: {cluster: e}}]
clusters: [{name: e, cluster: {server: 'https://e:1', insecure-skip-tls-verify: true}}]
users: null
current-context: elsewhere
"""


def shown(access: Access) -> Any:
    """All that a request takes of it."""
    tls = access.tls
    trust = tls and (tls.verify_mode, tls.check_hostname, tls.verify_flags, tls.get_ca_certs())
    return access.server, access.authorization, access.server_name, access.proxy, trust


def both(paths: str, context: str | None = None) -> Any:
    """What both readers make of files, which must be the same."""
    ours = plain_kubeconfig(paths, context)
    assert ours is not None, "it is plain"
    theirs = official(paths, context)
    assert shown(ours(None)) == shown(theirs(None))
    before = ours(None)
    assert ours(before).tls is before.tls
    return shown(ours(None))


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        ({"token": " t\n"}, {}),
        ({"token": "t", "tokenFile": "none", "username": "u", "password": "p"}, {}),
        ({"tokenFile": "token"}, {}),
        ({"tokenFile": "token", "username": "u", "password": "p"}, {}),
        ({"username": "u", "password": "p:q"}, {}),
        ({"username": "u"}, {}),
        ({"as": "another"}, {}),
        ({"token": "t"}, {"server": "http://127.0.0.1:8001//"}),
        ({"token": "t"}, {"insecure-skip-tls-verify": True, "tls-server-name": "kube.example.org"}),
        ({"token": "t"}, {"insecure-skip-tls-verify": False, "proxy-url": "http://inside:3128"}),
        ({"token": "t"}, {"proxy-url": "socks5://inside:1080"}),
    ],
)
@pytest.mark.parametrize("environment", [{}, {"HTTPS_PROXY": "http://p:1"}, {"ALL_PROXY": "http://p:1"}])
def test_what_is_said_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: Any, cluster: Any, environment: dict[str, str]
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "token").write_text("of-a-file\n")
    both(kubeconfig(tmp_path, **{"server": SERVER, "user": user, **cluster}))
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8,127.0.0.1")
    both(kubeconfig(tmp_path, **{"server": SERVER, "user": user, **cluster}))


@pytest.mark.parametrize("in_place", [True, False])
def test_certificates_in_place_and_beside(papers: Path, in_place: bool) -> None:
    def told(name: str, file: str) -> dict[str, str]:
        return {f"{name}-data": data(papers / file)} if in_place else {name: f"./{file}"}

    user = {**told("client-certificate", "client.crt"), **told("client-key", "client.key")}
    found = both(kubeconfig(papers, SERVER, user, **told("certificate-authority", "ca.crt")))
    assert [one["subject"] for one in found[-1][-1]] == [((("commonName", "ca"),),)]


def test_yaml_several_files_and_contexts(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text(YAML)
    two.write_text(MORE)
    assert both(str(one))[:2] == ("https://c:6443", "Bearer t")
    assert both(str(one), "there")[0] == "http://d:8080"
    merged = f"{tmp_path / 'nowhere'}:{one}:{two}"
    assert both(merged)[0] == "https://e:1"
    assert both(merged, "here")[0] == "https://c:6443"


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        ({"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}}, {}),
        ({"token": "t", "auth-provider": {"name": "oidc"}}, {}),
        ({"token": 1}, {}),
        ({"token": "", "username": "u", "password": "p"}, {}),
        ({"tokenFile": "none"}, {}),
        ({"username": "ü", "password": "p"}, {}),
        ({"client-certificate": "none"}, {}),
        ({"client-certificate-data": "bm9uZQ=="}, {}),
        ({"token": "t"}, {"certificate-authority": "none"}),
        ({"token": "t"}, {"certificate-authority-data": "%"}),
        ({"token": "t"}, {"insecure-skip-tls-verify": "yes"}),
        ({"token": "t"}, {"server": "10.0.0.1:6443"}),
    ],
)
def test_all_else_is_left_to_the_official_client(tmp_path: Path, user: Any, cluster: Any) -> None:
    assert plain_kubeconfig(kubeconfig(tmp_path, **{"server": SERVER, "user": user, **cluster}), None) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "---\na: b\n---\nc: d\n",
        YAML.replace("name: u\n", "name: v\n"),
        YAML.replace("current-context: here", "current-context: away"),
        YAML.replace("- name: c\n", "-\n"),
        YAML.replace("cluster: c,", ""),
    ],
)
def test_what_is_not_whole_is_left_to_the_official_client(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    assert plain_kubeconfig(str(tmp_path / "config"), None) is None


def test_credentials_whose_paths_begin_elsewhere_are_left_to_the_official_client(tmp_path: Path) -> None:
    whole = json.loads(Path(kubeconfig(tmp_path, SERVER)).read_text("utf-8"))
    (tmp_path / "users").mkdir()
    (tmp_path / "users" / "config").write_text(json.dumps({"users": whole.pop("users")}))
    (tmp_path / "config").write_text(json.dumps(whole))
    assert plain_kubeconfig(f"{tmp_path / 'config'}:{tmp_path / 'users' / 'config'}", None) is None


def test_the_official_client_is_imported_for_those_alone(tmp_path: Path) -> None:
    script = (
        "import sys; from koordpolicy.kube.api import Connection; Connection.load(sys.argv[1]);"
        "sys.exit('kubernetes' in sys.modules)"
    )
    plain = kubeconfig(tmp_path, SERVER)
    subprocess.run([sys.executable, "-c", script, plain], check=True)
    # The name of a provider that neither knows: nobody renews, and the rest is read as it stands.
    other = kubeconfig(tmp_path, SERVER, {"token": "t", "auth-provider": {"name": "none"}})
    assert subprocess.run([sys.executable, "-c", script, other], check=False).returncode == 1
