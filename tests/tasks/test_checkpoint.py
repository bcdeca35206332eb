"""Training states on disk."""

from pathlib import Path

import pytest
import torch

from store.errors import DiskFull
from tasks.checkpoint import (
    checkpoint_path,
    discard_checkpoint,
    load_checkpoint,
    restore_training,
    save_checkpoint,
    training_tensors,
)


def trained(updates: int) -> tuple[torch.nn.Linear, torch.optim.AdamW]:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(updates):
        optimizer.zero_grad()
        model(torch.ones(1, 3)).square().sum().backward()
        optimizer.step()
    return model, optimizer


def test_a_restored_training_takes_the_same_next_step(tmp_path: Path) -> None:
    model, optimizer = trained(3)
    save_checkpoint(tmp_path / "new", "abc", training_tensors(model, optimizer), {"finished": 3})
    found = load_checkpoint(tmp_path / "new", "abc")
    assert found is not None
    other, other_optimizer = trained(0)
    restore_training(other, other_optimizer, found[0])

    for one, its in ((model, optimizer), (other, other_optimizer)):
        its.zero_grad()
        one(torch.ones(1, 3)).square().sum().backward()
        its.step()

    assert found[1] == {"finished": 3}
    assert torch.equal(model.weight, other.weight)


def test_states_are_kept_apart_by_fingerprint_and_can_be_discarded(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "abc", {"x": torch.ones(1)}, {})

    assert load_checkpoint(tmp_path, "abd") is None
    discard_checkpoint(tmp_path, "abc")
    discard_checkpoint(tmp_path, "abc")
    assert load_checkpoint(tmp_path, "abc") is None


def test_a_damaged_state_is_removed_and_training_starts_over(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "abc", {"x": torch.ones(9)}, {})
    path = checkpoint_path(tmp_path, "abc")
    path.write_bytes(path.read_bytes()[:-5])

    assert load_checkpoint(tmp_path, "abc") is None
    assert not path.exists()


def test_a_full_disk_keeps_the_earlier_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path, "abc", {"x": torch.ones(1)}, {"finished": 1})

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tasks.checkpoint.os.fsync", no_space)
    with pytest.raises(DiskFull, match="work directory"):
        save_checkpoint(tmp_path, "abc", {"x": torch.ones(1)}, {"finished": 2})

    found = load_checkpoint(tmp_path, "abc")
    assert found is not None
    assert found[1] == {"finished": 1}
    assert len(list(tmp_path.iterdir())) == 1
