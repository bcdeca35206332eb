"""One tiny host for the room's tests."""

from pathlib import Path

import pytest

from tests.tiny_host import write_tiny_host


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tiny_host(tmp_path / "hosts" / "tiny")
