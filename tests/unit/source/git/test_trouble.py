import pytest

from koordpolicy.source.git.program import GitFailed, GitMissing, GitTookTooLong
from koordpolicy.source.git.trouble import at_home, explained, scrubbed


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("fatal: couldn't find remote ref main", "RefNotFound"),
        ("fatal: remote error: upload-pack: not our ref 0123", "RefNotFound"),
        ("error: Server does not allow request for unadvertised object 0123", "RefNotFound"),
        ("Host key verification failed.\nfatal: Could not read from remote repository.", "HostKeyUnknown"),
        (
            "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "AccessDenied",
        ),
        ("fatal: could not read Username for 'https://h': terminal prompts disabled", "AccessDenied"),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 403", "AccessDenied"),
        ("remote: Repository not found.\nfatal: repository 'https://h/x/' not found", "RepositoryNotFound"),
        ("fatal: '/x' does not appear to be a git repository", "RepositoryNotFound"),
        ("ssh: Could not resolve hostname h: Name or service not known", "Unreachable"),
        ("fatal: unable to access 'https://h/': Could not resolve host: h", "Unreachable"),
        ("ssh: connect to host h port 22: Connection refused", "Unreachable"),
        (
            "fatal: unable to access 'https://h/': SSL certificate problem: unable to get local issuer",
            "Unreachable",
        ),
        ("fatal: unable to access 'https://h/': Failed to connect to h port 443 after 3 ms", "Unreachable"),
        ("error: RPC failed; HTTP 502\nfatal: The requested URL returned error: 502", "Unreachable"),
        ("fatal: the remote end hung up unexpectedly", "Unreachable"),
        ("fatal: write error: No space left on device", "DiskFull"),
        ("fatal: transport 'file' not allowed", "TransportNotAllowed"),
        ("fatal: mismatched algorithms: client sha1; server sha256", "ObjectFormat"),
        ("fatal: detected dubious ownership in repository at '/x'", "NotTrusted"),
        ("something new", "GitFailed"),
        ("", "GitFailed"),
    ],
)
def test_what_git_says_has_a_reason(said: str, reason: str) -> None:
    error = explained(GitFailed("git failed with exit code 128", said, 128), "`https://h/x`", "main")
    assert error.reason == reason
    assert "`https://h/x`" in error.message


def test_no_host_but_the_one_that_was_given_is_named() -> None:
    for said in (
        "fatal: unable to access 'https://user:pass@h/': Failed to connect to proxy.internal port 3128: 10.1.2.3",
        "fatal: unable to access 'https://h/': Could not resolve proxy: proxy.internal",
        "fatal: odd thing at https://user:pass@mirror.internal/x via proxy: proxy.internal (10.1.2.3:80, fe80::1:2)",
        "remote: see admin@mirror.internal\nfatal: odd thing, connect to mirror.internal",
    ):
        message = explained(GitFailed("", said, 128), "`https://h/x`", "main").message
        for secret in ("internal", "pass", "10.1", "fe80"):
            assert secret not in message, message


def test_words_are_for_terminals_too() -> None:
    assert scrubbed("hint: more\nfatal: a\x1b[31mb\x07c\n") == "a [31mb c"
    assert scrubbed("\n") == ""
    assert len(scrubbed("fatal: " + "x" * 10_000)) == 300


def test_no_program_and_no_time() -> None:
    assert explained(GitMissing("x"), "`r`", "main").reason == "GitMissing"
    assert explained(GitTookTooLong("git did not finish within 3 s"), "`r`", "main").message.endswith(
        "within 3 s"
    )
    assert at_home(GitMissing("x"), "/d").reason == "GitMissing"
    assert at_home(GitTookTooLong("x"), "/d").reason == "TimedOut"
    assert at_home(GitFailed("", "error: No space left on device"), "/d").reason == "DiskFull"
    assert at_home(GitFailed("git failed with exit code 1"), "/d").message == (
        "git fails in `/d`: git failed with exit code 1"
    )
