import asyncio
import time
from pathlib import Path

import pytest

from koordpolicy.source.git.address import parse
from koordpolicy.source.git.environment import GitCredentials, git_for
from koordpolicy.source.git.program import Git, GitFailed, GitMissing, GitTookTooLong


def environment(
    address: str, given: dict[str, str], credentials: GitCredentials | None = None
) -> dict[str, str]:
    return dict(git_for(parse(address), credentials or GitCredentials(), given).environment or {})


def test_what_would_lead_git_astray_or_make_it_talk_is_left_out() -> None:
    given = {
        "HOME": "/home/me",
        "SSH_AUTH_SOCK": "/run/agent",
        "HTTPS_PROXY": "http://proxy",
        "GIT_SSH_COMMAND": "ssh -p 1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.sslCAInfo",
        "GIT_CONFIG_VALUE_0": "/ca",
    }
    misleading = {
        "GIT_DIR": "/x",
        "GIT_WORK_TREE": "/x",
        "GIT_INDEX_FILE": "/x",
        "GIT_OBJECT_DIRECTORY": "/x",
        "GIT_CONFIG_PARAMETERS": "'core.hooksPath=/x'",
        "GIT_TRACE_CURL": "1",
        "GIT_EXTERNAL_DIFF": "/x",
        "GIT_ALLOW_PROTOCOL": "ext",
        "LANGUAGE": "de",
    }
    made = environment("https://h/x.git", {**given, **misleading})
    assert given.items() <= made.items()
    assert {name for name in misleading if name in made} == {"GIT_ALLOW_PROTOCOL"}
    assert made["GIT_ALLOW_PROTOCOL"] == "https"
    assert (made["GIT_TERMINAL_PROMPT"], made["LC_ALL"]) == ("0", "C")


def test_passwords_are_in_no_argument() -> None:
    git = git_for(parse("https://me:s3cret@h/x.git"), GitCredentials(), {})
    assert "s3cret" not in " ".join(git._settings)
    assert "credential.https://h.helper=" in " ".join(git._settings), "for this server alone"
    assert not any(
        "credential" in one for one in git_for(parse("https://h/x"), GitCredentials(), {})._settings
    )
    file = GitCredentials(password_file=Path("/token"))
    assert not any("credential" in one for one in git_for(parse("ssh://h/x"), file, {})._settings)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "git"
    path.touch(0o755)
    return path


def run(script: Path, text: str, seconds: float = 30) -> str:
    script.write_text(f"#!/bin/sh\n{text}\n")
    return asyncio.run(Git(program=str(script)).run(seconds=seconds))


class TestRunning:
    def test_output(self, script: Path) -> None:
        assert run(script, "printf 'a\\377b'; echo warning >&2") == "a\udcffb"

    def test_failure(self, script: Path) -> None:
        with pytest.raises(GitFailed) as caught:
            run(script, "echo no >&2; exit 3")
        assert (caught.value.code, caught.value.said) == (3, "no\n")

    def test_words_without_end_are_cut(self, script: Path) -> None:
        with pytest.raises(GitFailed) as caught:
            run(script, "yes remote | head -c 3000000 >&2; exit 1")
        assert len(caught.value.said) == 64 << 10

    def test_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(GitMissing):
            asyncio.run(Git(program=str(tmp_path / "none")).run(seconds=1))

    @pytest.mark.parametrize("leader", ["wait", "trap '' TERM; wait; sleep 60"])
    def test_too_long_with_helpers_that_hang_on(self, script: Path, tmp_path: Path, leader: str) -> None:
        noted = tmp_path / "pid"
        with pytest.raises(GitTookTooLong):
            run(script, f"(trap '' TERM; sleep 60; sleep 60) & echo $! > {noted}; {leader}", seconds=0.5)
        process = Path("/proc", noted.read_text().strip(), "stat")
        end = time.monotonic() + 10
        while process.exists() and process.read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < end, "it lives on"
            time.sleep(0.02)

    def test_asks_nothing_of_standard_input(self, script: Path) -> None:
        assert run(script, "cat; echo end") == "end\n"
