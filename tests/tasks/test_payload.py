"""A payload that does not describe itself as expected is refused in one way, whatever it holds instead."""

import errno
from pathlib import Path

import pytest
import torch

from tasks.assembly import load_core
from tasks.errors import BadPayload
from tasks.payload import pack_tensors, save_weights, unpack_tensors
from tests.e2e.workplace import mounted


@pytest.mark.parametrize("record", ["5", "[1]", "null", '"text"', "[" * 100_000], ids=lambda r: r[:8])
def test_a_record_that_is_no_object_is_refused(record: str) -> None:
    from safetensors.torch import save

    payload = save({"x": torch.ones(1)}, {"core": record})
    with pytest.raises(BadPayload, match="is not a core"):
        unpack_tensors(payload, what="core")


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"architecture": {}, "vocab_size": "many", "source_widths": {}},
        {"architecture": {}, "vocab_size": 300, "source_widths": {}},
        {"architecture": {}, "vocab_size": 300, "source_widths": 3},
        {"architecture": {"width": -1}, "vocab_size": 300, "source_widths": {"memory": 64, "text": 16}},
        {"architecture": {}, "vocab_size": 300, "source_widths": {"memory": 64, "text": 16}},
    ],
)
def test_a_core_that_does_not_fit_its_description_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(BadPayload):
        load_core(pack_tensors({"x": torch.ones(1)}, what="core", record=record))


def test_a_full_disk_is_told_by_its_number(tmp_path: Path) -> None:
    with mounted(tmp_path, "-t", "tmpfs", "-o", "size=20k", "tmpfs"):
        with pytest.raises(OSError, match="No space left on device") as full:
            save_weights({"weight": torch.ones(100_000)}, tmp_path / "model.safetensors")
        assert list(tmp_path.iterdir()) == []
    assert full.value.errno == errno.ENOSPC
