import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from koordpolicy.source import Tree, limits, read_tree


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, text: str = "a: 1\n") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def found(tree: Tree) -> list[tuple[str, str, str]]:
    return [(one.code, one.span.file, one.message) for one in tree.found]


class TestWhatIsRead:
    def test_yaml_below_a_directory_by_the_name_it_was_given(self, here: Path) -> None:
        write("policies/a.yaml", "a")
        write("policies/inner/b.yml", "b")
        write("policies/readme.md")
        tree = read_tree(["policies"])
        assert tree.files == {"policies/a.yaml": "a", "policies/inner/b.yml": "b"}
        assert tree.touched == list(tree.files)
        assert found(tree) == []
        absolute = read_tree([here / "policies"])
        assert list(absolute.files) == [f"{here}/policies/a.yaml", f"{here}/policies/inner/b.yml"]

    def test_the_present_directory(self, here: Path) -> None:
        write("a.yaml")
        assert list(read_tree(["."]).files) == ["a.yaml"]

    def test_in_order_of_names_whatever_the_order_of_creation(self, here: Path) -> None:
        names = ["z.yaml", "b/2.yaml", "b/1.yaml", "a.yaml", "B.yaml", "b.yaml", "ä.yaml"]
        for name in names:
            write(name)
        expected = ["B.yaml", "a.yaml", "b/1.yaml", "b/2.yaml", "b.yaml", "z.yaml", "ä.yaml"]
        assert list(read_tree(["."]).files) == expected

    def test_paths_in_the_order_given_and_each_file_once(self, here: Path) -> None:
        write("a/1.yaml")
        write("b/1.yaml")
        assert list(read_tree(["b", "a/1.yaml", "a", "b"]).files) == ["b/1.yaml", "a/1.yaml"]

    def test_a_named_file_whatever_it_is_called(self, here: Path) -> None:
        write("policy.txt", "x")
        write(".hidden", "y")
        assert read_tree(["policy.txt", ".hidden"]).files == {"policy.txt": "x", ".hidden": "y"}

    def test_nothing_hidden_unless_it_is_named(self, here: Path) -> None:
        write(".git/a.yaml")
        write(".a.yaml")
        write("..2024/a.yaml")
        write("a.yaml")
        assert list(read_tree(["."]).files) == ["a.yaml"]
        assert list(read_tree(["..2024"]).files) == ["..2024/a.yaml"]

    def test_a_volume_of_kubernetes_once(self, here: Path) -> None:
        write("..2024_01/a.yaml", "real")
        Path("..data").symlink_to("..2024_01")
        Path("a.yaml").symlink_to("..data/a.yaml")
        tree = read_tree(["."])
        assert tree.files == {"a.yaml": "real"}
        assert found(tree) == []

    def test_an_empty_file(self, here: Path) -> None:
        write("a.yaml", "")
        assert read_tree(["."]).files == {"a.yaml": ""}

    def test_nothing_at_all(self, here: Path) -> None:
        tree = read_tree(["."])
        assert (tree.files, tree.touched, found(tree)) == ({}, [], [])


class TestLinks:
    def test_to_files_and_directories_in_the_tree(self, here: Path) -> None:
        write("p/base/a.yaml", "a")
        write("p/z/b.yaml", "b")
        Path("p/again").symlink_to("base")
        Path("p/b.yaml").symlink_to("z/b.yaml")
        tree = read_tree(["p"])
        assert tree.files == {"p/again/a.yaml": "a", "p/b.yaml": "b"}, (
            "each real file once, by the first name"
        )
        assert found(tree) == []

    def test_that_contain_themselves(self, here: Path) -> None:
        write("p/inner/a.yaml")
        Path("p/inner/up").symlink_to("..")
        Path("p/self.yaml").symlink_to("self.yaml")
        tree = read_tree(["p"])
        assert list(tree.files) == ["p/inner/a.yaml"]
        assert found(tree) == [
            ("KP001", "p/inner/up", "the directory contains itself, by a link"),
            (
                "KP001",
                "p/self.yaml",
                "the link cannot be followed: Too many levels of symbolic links",
            ),
        ]

    def test_that_would_double_with_every_level_cost_nothing(self, here: Path) -> None:
        for level in range(25):
            Path(f"p/{level}").mkdir(parents=True)
            for name in ("left", "right"):
                Path(f"p/{level}/{name}").symlink_to(f"../{level + 1}")
        write("p/25/a.yaml")
        assert len(read_tree(["p"]).files) == 1  # 2 to the 25th walks would not end

    def test_to_nothing(self, here: Path) -> None:
        Path("p").mkdir()
        Path("p/a.yaml").symlink_to("nowhere.yaml")
        Path("p/readme").symlink_to("nowhere")
        assert found(read_tree(["p"])) == [("KP001", "p/a.yaml", "the link leads to nothing")]

    @pytest.mark.parametrize("target", ["../outside", "../outside/a.yaml", "/etc/hosts", "../p-other/a.yaml"])
    def test_that_leave_the_tree_are_refused(self, here: Path, target: str) -> None:
        write("outside/a.yaml", "secret")
        write("p-other/a.yaml", "secret")
        Path("p").mkdir()
        Path("p/x.yaml").symlink_to(target)
        tree = read_tree(["p"])
        assert tree.files == {}
        assert found(tree) == [("KP001", "p/x.yaml", "the link leads out of the tree")]

    @pytest.mark.parametrize("target", ["../outside/a.yaml", "/proc/self/environ"])
    def test_that_are_named_and_leave_the_tree_are_refused_too(self, here: Path, target: str) -> None:
        write("outside/a.yaml", "secret")
        Path("p").mkdir()
        Path("p/x.yaml").symlink_to(target)
        tree = read_tree(["p/x.yaml"])
        assert tree.files == {}
        assert found(tree) == [("KP001", "p/x.yaml", "the link `p/x.yaml` leads out of the tree")]

    def test_that_are_named_may_lead_to_what_stands_beside_them(self, here: Path) -> None:
        write("p/..data/a.yaml", "a")
        Path("p/a.yaml").symlink_to("..data/a.yaml")
        assert read_tree(["p/a.yaml"]).files == {"p/a.yaml": "a"}

    def test_may_lead_anywhere_in_the_work_tree_but_into_git(self, here: Path) -> None:
        write(".git/config", "url = https://user:password@host/")
        write("base/a.yaml", "a")
        Path("p").mkdir()
        Path("p/a.yaml").symlink_to("../base/a.yaml")
        Path("p/b.yaml").symlink_to("../.git/config")
        tree = read_tree(["p"])
        assert tree.files == {"p/a.yaml": "a"}
        assert found(tree) == [("KP001", "p/b.yaml", "the link leads out of the tree")]

    def test_that_lead_out_to_what_is_no_policy_are_nothing_to_us(self, here: Path) -> None:
        Path("p").mkdir()
        Path("p/readme.md").symlink_to("/etc/hosts")
        assert found(read_tree(["p"])) == []

    def test_the_named_path_may_be_one(self, here: Path) -> None:
        write("real/a.yaml", "a")
        Path("p").symlink_to("real")
        assert read_tree(["p"]).files == {"p/a.yaml": "a"}


class TestWhatCannotBeRead:
    def test_a_path_that_is_not_there(self, here: Path) -> None:
        Path("broken").symlink_to("nowhere")
        assert found(read_tree(["missing", "broken"])) == [
            ("KP001", "broken", "`broken` is a link to nothing"),
            ("KP001", "missing", "`missing` does not exist"),
        ]

    def test_bytes_that_are_no_text_with_their_place(self, here: Path) -> None:
        Path("a.yaml").write_bytes("# grün\nb: \xe4".encode() + b"\xe4\xe4")
        Path("b.yaml").write_text("b: 1")
        tree = read_tree(["."])
        assert list(tree.files) == ["b.yaml"]
        assert tree.touched == ["a.yaml", "b.yaml"]
        (problem,) = tree.found
        assert (problem.code, problem.message) == ("KP001", "the file is not UTF-8: byte 0xe4 cannot be read")
        assert (problem.span.start.line, problem.span.start.column) == (2, 5)

    def test_a_file_that_is_too_large(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "READ", replace(limits.READ, file_bytes=10))
        write("a.yaml", "x" * 10)
        write("b.yaml", "x" * 11)
        tree = read_tree(["."])
        assert list(tree.files) == ["a.yaml"]
        assert found(tree) == [("KP004", "b.yaml", "the file has 11 bytes, more than 10")]

    def test_a_huge_file_costs_no_memory(self, here: Path) -> None:
        with Path("a.yaml").open("wb") as file:
            file.truncate(1 << 40)
        assert [code for code, *_ in found(read_tree(["."]))] == ["KP004"]

    def test_too_much_together(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "READ", replace(limits.READ, bytes=25))
        for name in "abc":
            write(f"{name}.yaml", "x" * 10)
        tree = read_tree(["."])
        assert list(tree.files) == ["a.yaml", "b.yaml"]
        assert found(tree) == [("KP004", "c.yaml", "the files have more than 25 bytes together")]

    @pytest.mark.parametrize("limit", ["files", "entries"])
    def test_too_many(self, here: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
        monkeypatch.setattr(limits, "READ", replace(limits.READ, **{limit: 3}))
        for number in range(4):
            write(f"p/{number}/a.yaml")
        tree = read_tree(["p"])
        assert found(tree) == [("KP004", "p", f"there are more than 3 {limit} here")]

    def test_directories_that_are_too_deep(self, here: Path) -> None:
        deep = "p/" + "/".join("d" * 40)
        write(f"{deep}/a.yaml")
        write("p/b.yaml")
        tree = read_tree(["p"])
        assert list(tree.files) == ["p/b.yaml"]
        assert [message for *_, message in found(tree)] == ["directories are too deep"]

    def test_a_path_that_is_too_long(self, here: Path) -> None:
        deep = "/".join(["p", *["d" * 240] * 4, "ü" * 40])
        write(f"{deep}/a.yaml")
        write("p/b.yaml")
        tree = read_tree(["p"])
        assert list(tree.files) == ["p/b.yaml"]
        assert found(tree) == [("KP004", f"{deep}/a.yaml", "the path has more than 1,024 bytes")]

    def test_what_is_no_regular_file(self, here: Path) -> None:
        os.mkfifo("a.yaml")  # reading it would wait for ever
        tree = read_tree(["."])
        assert found(tree) == [("KP001", "a.yaml", "this is not a regular file")]

    def test_a_device_that_is_named(self) -> None:
        assert found(read_tree(["/dev/null"])) == [("KP001", "/dev/null", "this is not a regular file")]


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A directory that others may enter, and us without the rights of root."""
    if os.geteuid() != 0:
        with tempfile.TemporaryDirectory() as directory:
            yield Path(directory)
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)
        os.seteuid(0)


def drop_rights() -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)


def test_what_we_may_not_read(as_nobody: Path) -> None:
    write(f"{as_nobody}/closed/a.yaml")
    write(f"{as_nobody}/b.yaml")
    write(f"{as_nobody}/c.yaml")
    Path(as_nobody, "b.yaml").chmod(0)
    Path(as_nobody, "closed").chmod(0)
    drop_rights()
    tree = read_tree([as_nobody])
    assert list(tree.files) == [f"{as_nobody}/c.yaml"]
    assert found(tree) == [
        ("KP001", f"{as_nobody}/b.yaml", "the file cannot be read: Permission denied"),
        ("KP001", f"{as_nobody}/closed", "it cannot be read: Permission denied"),
    ]
    if os.geteuid() != 65534:
        Path(as_nobody, "closed").chmod(0o700)
