"""A path that a command is given: where nothing is there it is bad input, and an empty one is no path."""

from collections.abc import Callable
from pathlib import Path

import pytest

Cellar = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    "command",
    [
        ("eval", "run", "--package"),
        ("eval", "run", "questions", "--data"),
        ("eval", "run", "--out"),
        ("eval", "run", "--params"),
        ("eval", "show"),
        ("eval", "package"),
        ("corpus", "build", "--folder"),
        ("corpus", "build", "--text"),
        ("snapshot", "export", "v1"),
        ("snapshot", "import", "x.tar", "--key"),
        ("key", "generate"),
        ("skill", "publish", "a"),
        ("site", "build", "--out"),
    ],
)
def test_an_empty_path_does_not_mean_the_working_folder(
    cellar: Cellar, workplace: Path, command: tuple[str, ...]
) -> None:
    code, _, err = cellar(*command, "")

    assert (code, "is empty; give a path, or . for the working folder" in err) == (2, True), err
    assert list(workplace.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        ("eval", "run", "--package"),
        ("eval", "run", "questions", "--data"),
        ("eval", "run", "--params"),
        ("eval", "show"),
        ("corpus", "build", "--folder"),
        ("corpus", "build", "--jsonl"),
        ("corpus", "build", "--parquet"),
        ("corpus", "build", "--text"),
        ("snapshot", "import"),
        ("snapshot", "import", "x.tar", "--key"),
        ("skill", "publish", "a"),
        ("serve", "--file"),
    ],
)
@pytest.mark.parametrize("name", ["none", "none.tar"])
def test_where_nothing_is_the_path_is_bad_input(
    cellar: Cellar, workplace: Path, command: tuple[str, ...], name: str
) -> None:
    code, _, err = cellar(*command, name)

    assert (code, name in err) == (2, True), err
