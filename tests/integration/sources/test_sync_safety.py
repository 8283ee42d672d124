"""What a sync must not do: believe anyone, tell secrets, run what others wrote."""

import asyncio
import base64
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from koordpolicy.source import Revision
from koordpolicy.source.git.environment import GitCredentials
from koordpolicy.source.git.repository import RepositorySource
from koordpolicy.source.git.signatures import Signers
from koordpolicy.source.git.sync import GitSync, SyncSettings
from tests.integration.sources.following import following
from tests.integration.sources.repositories import ENVIRONMENT, GitServer, Upstream, git, signed_by, ssh_key
from tests.integration.sources.syncs import fail, sync, syncing, tree


class TestSignatures:
    @pytest.fixture
    def key(self, tmp_path: Path) -> Path:
        if shutil.which("ssh-keygen") is None:
            pytest.skip("no ssh-keygen")
        return ssh_key(tmp_path)

    @pytest.fixture
    def signers(self, tmp_path: Path, key: Path) -> Signers:
        allowed = tmp_path / "allowed_signers"
        allowed.write_text(f"author@example.org {key.with_suffix('.pub').read_text()}")
        return Signers(ssh=allowed)

    def test_only_permitted_signers(
        self, upstream: Upstream, target: Path, tmp_path: Path, key: Path, signers: Signers
    ) -> None:
        good = upstream.commit({"one.yaml": "1"}, *signed_by(key))
        syncer = syncing(upstream.bare, target, signers=signers)
        assert sync(syncer).commit == good
        unsigned = upstream.commit({"one.yaml": "2"})
        error = fail(syncer)
        assert (error.reason, error.message) == ("SignatureInvalid", f"commit {unsigned} is not signed")
        strange = upstream.commit({"one.yaml": "3"}, *signed_by(ssh_key(tmp_path, "stranger")))
        assert fail(syncer).message == f"commit {strange} is signed by none of the permitted signers"
        assert str((target / "policies").readlink()) == f".worktrees/{good}"
        assert tree(target / "policies") == {"one.yaml": "1"}
        assert not (target / ".worktrees" / unsigned).exists(), "not even checked out"
        again = upstream.commit({"one.yaml": "4"}, *signed_by(key))
        assert sync(syncer).commit == again

    def test_a_signature_that_was_put_on_another_commit(
        self, upstream: Upstream, target: Path, key: Path, signers: Signers
    ) -> None:
        upstream.commit({"one.yaml": "1"}, *signed_by(key))
        raw = git(upstream.work, "cat-file", "commit", "HEAD").replace("change", "changed") + "\n"
        done = subprocess.run(
            ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
            input=raw, cwd=upstream.work, env=ENVIRONMENT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        git(upstream.work, "reset", "--quiet", "--hard", done.stdout.strip())
        upstream.push()
        error = fail(syncing(upstream.bare, target, signers=signers))
        assert (error.reason, "bad signature" in error.message) == ("SignatureInvalid", True)
        assert not (target / "policies").exists()

    def test_what_was_published_before_signatures_were_asked_for(
        self, upstream: Upstream, target: Path, signers: Signers
    ) -> None:
        upstream.commit({"one.yaml": "1"})
        first = syncing(upstream.bare, target)
        sync(first)
        first.close()
        syncer = syncing(upstream.bare, target, signers=signers)

        async def scene() -> None:
            async with following(RepositorySource(syncer)) as followed:
                assert (await followed.trouble()).reason == "SignatureInvalid"
                assert await followed.quiet()

        asyncio.run(scene())

    def test_a_list_of_signers_that_is_not_there(
        self, upstream: Upstream, target: Path, tmp_path: Path
    ) -> None:
        upstream.commit({"one.yaml": "1"})
        for signers in (Signers(ssh=tmp_path / "missing"), Signers(gpg=tmp_path / "missing")):
            syncer = syncing(upstream.bare, target, signers=signers)
            assert fail(syncer).reason == "SignersMissing"
            syncer.close()

    @pytest.mark.parametrize("form", ["exported", "home"])
    def test_gpg(self, upstream: Upstream, target: Path, tmp_path: Path, key: Path, form: str) -> None:
        if shutil.which("gpg") is None:
            pytest.skip("no gpg")
        home = tmp_path / "gnupg"
        home.mkdir(mode=0o700)

        def gpg(*arguments: str) -> str:
            command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", "", *arguments]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

        try:
            gpg("--quick-gen-key", "author@example.org", "ed25519", "sign", "never")
            program = tmp_path / "gpg-at-home"
            program.write_text(f'#!/bin/sh\nexec gpg --homedir "{home}" "$@"\n')
            program.chmod(0o755)
            sign = (
                "-c",
                f"gpg.program={program}",
                "-c",
                "user.signingkey=author@example.org",
                "-c",
                "commit.gpgsign=true",
            )
            keys = tmp_path / "keys"
            keys.mkdir()
            gpg("--armor", "--output", str(keys / "author.asc"), "--export", "author@example.org")
            good = upstream.commit({"one.yaml": "1"}, *sign)
        finally:
            subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)
        syncer = syncing(upstream.bare, target, signers=Signers(gpg=keys if form == "exported" else home))
        assert sync(syncer).commit == good
        upstream.commit({"one.yaml": "2"})
        assert fail(syncer).reason == "SignatureInvalid"
        signed = upstream.commit({"one.yaml": "3"}, *signed_by(key))
        assert fail(syncer).message == f"commit {signed} is signed by none of the permitted signers"
        syncer.close()
        git(upstream.work, "reset", "--quiet", "--hard", good)
        upstream.push()
        none = tmp_path / "none"
        none.touch()
        other = syncing(upstream.bare, tmp_path / "other", signers=Signers(ssh=none))
        assert fail(other).reason == "SignatureInvalid", "a kind that is not named is refused"


class TestAccess:
    def test_a_password_that_nobody_sees(
        self, upstream: Upstream, server: GitServer, target: Path, tmp_path: Path
    ) -> None:
        commit = upstream.commit({"one.yaml": "1"})
        secret = "s3cr/et%"
        server.password = "Basic " + base64.b64encode(f"me:{secret}".encode()).decode()
        syncer = syncing(server.url(login="me:s3cr%2Fet%25@"), target)
        assert sync(syncer).commit == commit
        stored = b"".join(path.read_bytes() for path in (target / ".git").rglob("*") if path.is_file())
        assert b"s3cr" not in stored
        assert "s3cr" not in repr(syncer.address) + syncer.address.shown + syncer.address.url
        server.password = "Basic other"
        error = fail(syncer)
        assert error.reason == "AccessDenied"
        assert "s3cr" not in error.message
        assert error.message.startswith(f"`{server.url()}` ")

    def test_a_password_from_a_file_that_changes(
        self, upstream: Upstream, server: GitServer, target: Path, tmp_path: Path
    ) -> None:
        upstream.commit({"one.yaml": "1"})
        token = tmp_path / "it's a token"
        credentials = GitCredentials(username="bot", password_file=token)
        syncer = syncing(server.url(), target, credentials=credentials)
        for secret in ("first", "second"):
            server.password = "Basic " + base64.b64encode(f"bot:{secret}".encode()).decode()
            token.write_text(f"{secret}\n")
            sync(syncer)
        token.write_text("wrong\n")
        assert fail(syncer).reason == "AccessDenied"

    def test_ssh_with_its_own_key_and_known_hosts(
        self, upstream: Upstream, target: Path, tmp_path: Path
    ) -> None:
        """The program `ssh` is a stand-in that notes how it is called and runs the command here."""
        commit = upstream.commit({"one.yaml": "1"})
        programs = tmp_path / "bin"
        programs.mkdir()
        noted = tmp_path / "noted"
        ssh = programs / "ssh"
        ssh.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" >> "{noted}"\nfor last; do :; done\nexec sh -c "$last"\n'
        )
        ssh.chmod(0o755)
        credentials = GitCredentials(ssh_key=tmp_path / "a key", known_hosts=tmp_path / "known_hosts")
        settings = SyncSettings(f"git@host.example:{upstream.bare}", target, credentials=credentials)
        environment = {**ENVIRONMENT, "PATH": f"{programs}:{ENVIRONMENT['PATH']}"}
        syncer = GitSync(settings, environment=environment, jitter=lambda: 0, clock=time.time)
        assert sync(syncer).commit == commit
        words = noted.read_text().splitlines()
        assert words[words.index("-i") + 1] == f"{tmp_path}/a key"
        for option in ("BatchMode=yes", "IdentitiesOnly=yes", "StrictHostKeyChecking=yes"):
            assert option in words
        assert f"UserKnownHostsFile={tmp_path}/known_hosts" in words
        assert "git@host.example" in words

    def test_nobody_is_asked(self, upstream: Upstream, server: GitServer, target: Path) -> None:
        server.password = "Basic something"
        assert fail(syncing(server.url(), target)).reason == "AccessDenied"

    def test_a_repository_that_is_not_there(self, server: GitServer, target: Path, tmp_path: Path) -> None:
        for repository in (server.url("other.git"), str(tmp_path / "other.git")):
            syncer = syncing(repository, target)
            assert fail(syncer).reason == "RepositoryNotFound", repository
            syncer.close()

    def test_a_server_that_never_answers(self, upstream: Upstream, target: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"http://127.0.0.1:{silent.getsockname()[1]}/policies.git"
            syncer = syncing(address, target, timeout=1.0)
            began = time.monotonic()
            assert fail(syncer).reason == "TimedOut"
            assert time.monotonic() - began < 30

    def test_no_git(self, upstream: Upstream, target: Path) -> None:
        settings = SyncSettings(str(upstream.bare), target)
        syncer = GitSync(settings, environment={"PATH": "/nowhere"}, jitter=lambda: 0, clock=time.time)
        assert fail(syncer).reason == "GitMissing"


class TestHostileRepositories:
    def test_nothing_of_theirs_is_run(self, upstream: Upstream, target: Path, tmp_path: Path) -> None:
        """Hooks, filters and monitors that a configuration names do not run on what is fetched."""
        ran = tmp_path / "ran"
        script = tmp_path / "script"
        script.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
        script.chmod(0o755)
        hooks = tmp_path / "hooks"
        hooks.mkdir()
        for hook in ("post-checkout", "reference-transaction", "post-merge", "post-index-change"):
            shutil.copy(script, hooks / hook)
        configuration = tmp_path / "gitconfig"
        configuration.write_text(
            f'[core]\nhooksPath = {hooks}\nfsmonitor = {script}\n[filter "x"]\nsmudge = {script}\nprocess = {script}\n'
            f"required = true\n"
        )
        environment = {**ENVIRONMENT, "GIT_CONFIG_GLOBAL": str(configuration)}
        (upstream.work / ".git" / "info" / "attributes").write_text(
            "* -filter -text -working-tree-encoding\n"
        )
        upstream.commit(
            {
                ".gitattributes": "*.yaml filter=x ident working-tree-encoding=UTF-16 eol=crlf\n",
                "a.yaml": "$Id$\n",
            }
        )
        settings = SyncSettings(str(upstream.bare), target, ref="main")
        syncer = GitSync(settings, environment=environment, jitter=lambda: 0, clock=time.time)
        sync(syncer)
        assert (target / "policies" / "a.yaml").read_bytes() == b"$Id$\n", "the very bytes of the commit"
        assert not ran.exists()

    def test_links_out_of_the_tree_are_findings(self, upstream: Upstream, target: Path) -> None:
        fine = {"one.yaml": "1", "base/two.yaml": "2"}
        upstream.commit(fine)
        (upstream.work / "passwords.yaml").symlink_to("/etc/passwd")
        (upstream.work / "store.yaml").symlink_to(".git")
        (upstream.work / "ours.yaml").symlink_to("base/two.yaml")
        upstream.commit({})
        syncer = syncing(upstream.bare, target)

        async def scene() -> Revision:
            async with following(RepositorySource(syncer)) as followed:
                return await followed.revision()

        revision = asyncio.run(scene())
        assert sorted(one.span.file for one in revision.found) == ["passwords.yaml", "store.yaml"]
        assert revision.files == fine
        assert revision.found.has_errors

    def test_a_submodule_cannot_lead_to_other_kinds_of_addresses(
        self, upstream: Upstream, server: GitServer, tmp_path: Path, target: Path
    ) -> None:
        part = Upstream(tmp_path / "part", "part.git")
        part.commit({"part.yaml": "p"})
        git(
            upstream.work,
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            str(part.bare),
            "part",
        )
        upstream.commit({"one.yaml": "1"})
        error = fail(syncing(server.url(), target, submodules=True))
        assert error.reason == "TransportNotAllowed"
        assert not (target / "policies").exists()
