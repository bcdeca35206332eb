"""A commit records the code that made it: its version, and of a checkout the git commit."""

import subprocess
from pathlib import Path

import pytest

from flows.origin import code, revision_of


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name in ("store", "tasks", "flows"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "module.py").write_text("x = 1\n")
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "notes.txt").write_text("")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_a_checkout_has_a_revision_that_says_whether_its_code_was_changed(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    assert revision_of(checkout) == commit

    (checkout / "notes.txt").write_text("of no concern")
    assert revision_of(checkout) == commit

    (checkout / "flows" / "module.py").write_text("x = 2\n")
    assert revision_of(checkout) == f"{commit}+modified"


def test_a_folder_inside_of_anothers_checkout_has_no_revision(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert revision_of(checkout / "flows") == ""
    monkeypatch.setenv("PATH", "/nowhere")
    assert revision_of(checkout) == ""


def test_another_repository_in_the_environment_is_not_asked(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_WORK_TREE", "/nowhere")

    assert revision_of(checkout) == commit


def test_this_process_knows_its_code() -> None:
    assert code().keys() <= {"version", "revision"}
    assert "version" in code()
