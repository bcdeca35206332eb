"""A tiny host of six layers, and a text it can learn."""

from pathlib import Path

import pytest

from tests.hosted import host, host_folder, store  # noqa: F401

TEXT = "".join(f"the {n}th cask is cool and dark; keep it shut, then count to {n + 3}.\n" for n in range(900))


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "cellar.txt"
    path.write_text(TEXT)
    return path
