"""`koordpolicy comment` beside services that answer as GitHub and GitLab document it."""

import io
from pathlib import Path

import pytest

from koordpolicy.cli.flags.comment import TOKEN
from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.integration.ci.conftest import HOSTILE, harmless
from tests.parts.forges import OURS, READ_ONLY, Forge, serving
from tests.parts.http_answers import answering

MARK = "<!-- koordpolicy comment: diff -->"


@pytest.fixture
def forge(forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forge:
    """The service whose job this process is, with the token of an account that may write."""
    for name, value in {**forge.variables(tmp_path), TOKEN: OURS}.items():
        monkeypatch.setenv(name, value)
    return forge


def comment(text: str, *flags: str) -> tuple[int, str]:
    """Exit code, and all that is said."""
    out = io.StringIO()
    code = main(("comment", "-", *flags), Terminal(out, out, io.BytesIO(text.encode())))
    return code, out.getvalue()


def bodies(forge: Forge) -> list[str]:
    return [one["body"] for one in forge.comments]


def test_the_next_run_edits_the_comment_of_the_one_before(forge: Forge) -> None:
    code, said = comment("**1 decision changes**")
    assert (code, said.split()[0]) == (0, "wrote")
    assert bodies(forge) == [f"{MARK}\n**1 decision changes**\n"]
    assert comment("**nothing changes**")[1].startswith("edited ")
    assert bodies(forge) == [f"{MARK}\n**nothing changes**\n"]
    before = len(forge.seen)
    assert comment("**nothing changes**")[1].startswith("kept ")
    assert not [one for one in forge.seen[before:] if one.startswith("PUT")]


def test_what_it_says_is_where_the_comment_is_read(forge: Forge) -> None:
    where = "https://gitlab.example.org/shop/policies/-/merge_requests/7#note_0"
    assert comment("a")[1].split() == ["wrote", where if forge.service == "gitlab" else f"{forge.url}/7#IC_0"]


def test_comments_of_others_stay_whatever_they_say(forge: Forge) -> None:
    theirs = f"{MARK}\nlooks like one of ours\n"
    own = ["I quote:\n" + MARK, "<!-- koordpolicy comment: diff-of-old -->\nanother one\n"]
    forge.comments[:] = [
        {"account": "others", "body": theirs},
        *({"account": "us", "body": one} for one in own),
    ]
    assert comment("first")[0] == 0
    assert comment("second")[0] == 0
    assert bodies(forge) == [theirs, *own, f"{MARK}\nsecond\n"]


def test_each_name_has_its_comment(forge: Forge) -> None:
    for text in ("one", "two"):
        assert comment(text)[0] == 0
        assert comment(text, "--about", "what-if")[0] == 0
    assert bodies(forge) == [f"{MARK}\ntwo\n", "<!-- koordpolicy comment: what-if -->\ntwo\n"]


def test_the_comment_is_found_behind_many_others(forge: Forge) -> None:
    forge.comments[:] = [{"account": "others", "body": f"remark {number}"} for number in range(230)]
    forge.comments.append({"account": "us", "body": f"{MARK}\nold\n"})
    assert comment("new")[0] == 0
    assert (len(forge.comments), forge.comments[-1]["body"]) == (231, f"{MARK}\nnew\n")


def test_a_token_that_may_not_write_is_told_of_and_never_shown(
    forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for token, words in (
        (READ_ONLY, "pull-requests: write"),
        ("nobody", "make a new one"),
        ("", "is empty"),
        ("a\nb", "is no token"),
    ):
        monkeypatch.setenv(TOKEN, token)
        code, said = comment("text")
        assert code == 2
        assert words in said
        assert not token or token not in said
    assert forge.comments == []


def test_the_token_goes_to_nobody_else(forge: Forge) -> None:
    with serving(forge.service) as other:
        forge.elsewhere = f"{other.url}/graphql"
        code, said = comment("text")
        assert (code, other.seen) == (2, [])
        assert "302" in said


def test_a_job_without_a_merge_request_is_told_so(
    forge: Forge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "push.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "push.json"))
    monkeypatch.delenv("CI_MERGE_REQUEST_IID", raising=False)
    code, said = comment("text")
    assert code == 2
    assert "run it" in said
    assert forge.seen == []


def test_elsewhere_there_is_nothing_to_comment_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    code, said = comment("text")
    assert code == 2
    assert "no job of GitHub Actions or GitLab CI" in said


@pytest.mark.parametrize(
    "answer",
    [
        "nonsense",
        "null",
        "[]",
        "[1]",
        '{"id": 1}',
        '{"errors": 5}',
        '{"data": {"repository": null}}',
        '{"data": {"repository": {"pullRequest": {"id": "x", "comments": {"nodes": 5}}}}}',
        '{"data": {"repository": {"pullRequest": {"id": "x", "comments": {"nodes": [null, 5], "pageInfo": 3}}}}}',
        "[" * 100_000,
    ],
)
def test_an_answer_that_is_none_of_the_service_s_is_told_of(
    answer: str, forge: Forge, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(lambda *_: (200, answer.encode())) as url:
        monkeypatch.setenv("GITHUB_GRAPHQL_URL", url)
        monkeypatch.setenv("CI_API_V4_URL", url)
        code, said = comment("text")
    assert code == 2
    assert "GitHub answers" in said or "GitLab answers" in said
    assert forge.comments == []


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_nothing_is_no_comment(text: str, forge: Forge) -> None:
    assert comment(text)[0] == 2
    assert forge.seen == []


def test_what_is_too_long_is_cut_and_closed(forge: Forge) -> None:
    text = "<details><summary>x</summary>\n\n```diff\n" + "+ a line of an expression\n" * 5_000
    assert comment(text + "```\n</details>\n")[0] == 0
    [body] = bodies(forge)
    assert len(body) < 65_536
    assert body.count("```") == 2
    assert body.endswith(
        "\n```\n</details>\n\n*The rest is cut: it is longer than a comment may be, and stands whole in the job.*\n"
    )


def test_what_becomes_longer_on_its_way_is_not_too_long(forge: Forge) -> None:
    assert comment("/a\n" * 19_000 + "\x01" * 1_000)[0] == 0
    assert len(bodies(forge)[0]) < 65_536


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/merge", "\u200b/merge"),
        ("a\n  /close\r\n\t/approve", "a\n  \u200b/close\n\\t/approve"),
        ("a\r/merge", "a\n\u200b/merge"),
        ("policies/a.yaml\n/ 2", "policies/a.yaml\n/ 2"),
        ("a\u202eb", "a\\u202eb"),
    ],
)
def test_nothing_in_it_is_an_order_or_hidden(text: str, shown: str, forge: Forge) -> None:
    assert comment(text)[0] == 0
    assert bodies(forge) == [f"{MARK}\n{shown}\n"]


def test_what_tests_of_scripts_take_for_harmless_is() -> None:
    """`harmless` looks at what stands outside of code."""
    for inert in (
        f"`{HOSTILE.replace('`', '')}`",
        "```text\n@all <b>\n```",
        "<code>&#64;all</code>",
        "a \\<b",
    ):
        assert harmless(f"{MARK}\n{inert}\n")
    for active in (
        "@all",
        "<img src=x>",
        "#1",
        "https://e.example",
        "www.e.example",
        "/close",
        "`@all",
        HOSTILE,
    ):
        assert not harmless(f"{MARK}\n{active}\n")


@pytest.mark.parametrize("name", ["", "A", "a--b", "-->", "a b", "a\n", "x" * 64])
def test_a_name_cannot_speak_in_the_comment(name: str, forge: Forge) -> None:
    with pytest.raises(SystemExit) as ended:
        comment("text", f"--about={name}")
    assert ended.value.code == 2
    assert forge.seen == []
