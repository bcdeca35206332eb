"""A tiny host, and a retention text."""

from pathlib import Path

import pytest

from tasks.anneal import AnnealParams
from tasks.anneal.params import SealedParams
from tasks.shadows import HeldParams, TextSource
from tests.hosted import host, host_folder, store  # noqa: F401


@pytest.fixture
def anneal(tmp_path: Path) -> AnnealParams:
    path = tmp_path / "other.txt"
    path.write_text("".join(f"{n * n} IS A SQUARE, {n} IS NOT?\n" for n in range(300)))
    return AnnealParams(
        retention=(TextSource(path=path),),
        held=HeldParams(selection_tokens=64, guard_tokens=64, sealed_tokens=256),
        passage_tokens=32,
        scored=16,
        sealed=SealedParams(chunk_tokens=64),
    )
