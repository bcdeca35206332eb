"""Training states on disk."""

import ast
from pathlib import Path

import pytest
import torch

import tasks
from store import Element, Store
from store.errors import DiskFull, ReadOnly, StorageUnavailable
from store.transfer import export_snapshot
from tasks.checkpoint import (
    Checkpoints,
    checkpoint_path,
    discard,
    find_trained,
    load_checkpoint,
    publish_trained,
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


def test_states_are_kept_apart_by_fingerprint(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "abc", {"x": torch.ones(1)}, {})

    assert load_checkpoint(tmp_path, "abd") is None
    assert load_checkpoint(tmp_path, "abc") is not None


def test_a_state_under_the_name_of_another_is_not_taken(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "abc", {"x": torch.ones(1)}, {"finished": 3})
    checkpoint_path(tmp_path, "abc").rename(checkpoint_path(tmp_path, "abd"))

    assert load_checkpoint(tmp_path, "abd") is None
    assert list(tmp_path.iterdir()) == []


def test_what_stands_in_the_way_of_a_state_is_said_and_stays(tmp_path: Path) -> None:
    checkpoint_path(tmp_path, "abc").mkdir()
    (tmp_path / "file").write_text("mine")

    with pytest.raises(StorageUnavailable, match="cannot read abc"):
        load_checkpoint(tmp_path, "abc")
    with pytest.raises(StorageUnavailable, match="cannot write abc"):
        save_checkpoint(tmp_path, "abc", {"x": torch.ones(1)}, {})
    with pytest.raises(StorageUnavailable, match="cannot write abc"):
        save_checkpoint(tmp_path / "file", "abc", {"x": torch.ones(1)}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["abc.checkpoint", "file"]


def test_a_state_goes_when_its_training_is_published_and_not_before(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "abc", {"x": torch.ones(1)}, {})
    checkpoints = Checkpoints(tmp_path, "abc")
    element = Element("skill", "made", b"{}", media="application/json")
    store = Store.create(f"file:{tmp_path / 'store'}")
    other = store.publish([Element("skill", "other", b"{}", media="application/json")], message="other")
    export_snapshot(store, store.pin(other, message="other"), tmp_path / "export")

    with pytest.raises(ReadOnly):
        publish_trained(Store.open(str(tmp_path / "export")), element, checkpoints, message="made")
    assert load_checkpoint(tmp_path, "abc") is not None

    ref = publish_trained(store, element, checkpoints, message="made")
    assert store.read(ref) == b"{}"
    assert load_checkpoint(tmp_path, "abc") is None
    assert publish_trained(store, element, None, message="made") == ref


def test_what_a_kill_left_behind_goes_once_the_training_is_found_published(tmp_path: Path) -> None:
    element = Element("skill", "made", b"{}", media="application/json", provenance={"recipe": "abc"})
    store, work = Store.create(f"file:{tmp_path / 'store'}"), tmp_path / "work"
    checkpoints = Checkpoints(work, "abc")
    for fingerprint in ("abc", "abd"):
        save_checkpoint(work, fingerprint, {"x": torch.ones(1)}, {})
    (work / "abc.77.partial").write_bytes(b"half")

    assert find_trained(store, "abc", checkpoints) is None
    assert len(list(work.iterdir())) == 3
    [ref] = store.publish([element], message="killed before it removed its state")
    assert find_trained(store, "abc", checkpoints) == ref
    assert [path.name for path in work.iterdir()] == ["abd.checkpoint"]
    assert find_trained(store, "abc", None) == ref


def test_every_room_that_keeps_states_knows_them_before_it_finds_its_work_published() -> None:
    """So that each can remove what a kill left: none returns before it has said where its states lie."""
    seen = 0
    for path in Path(tasks.__path__[0]).glob("*/*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            nodes = list(ast.walk(function))
            keeps = [n.lineno for n in nodes if isinstance(n, ast.Call) and _makes_states(n)]
            ends = [n.lineno for n in nodes if isinstance(n, ast.Return | ast.Continue)]
            seen += bool(keeps)
            assert not keeps or max(keeps) < min(ends), f"{path}, {function.name}"
    assert seen > 12


def _makes_states(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Name) and call.func.id in {"Checkpoints", "Unfinished"} and bool(call.args)
    )


def test_a_state_that_cannot_be_removed_is_left_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint_path(tmp_path, "abc").mkdir()
    discard(Checkpoints(tmp_path, "abc"))
    assert "finished work is not removed" in caplog.text


def test_a_state_half_written_that_another_removed_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, removed = Path.replace, list[Path]()

    def removed_once(path: Path, target: Path) -> Path:
        if not removed:
            removed.append(path)
            discard(Checkpoints(tmp_path, "abc"))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", removed_once)
    save_checkpoint(tmp_path, "abc", {"x": torch.ones(1)}, {"finished": 2})
    assert len(removed) == 1
    assert load_checkpoint(tmp_path, "abc") is not None


def test_a_damaged_state_is_removed_and_training_starts_over(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "abc", {"x": torch.ones(9)}, {})
    path = checkpoint_path(tmp_path, "abc")
    path.write_bytes(path.read_bytes()[:-5])

    assert load_checkpoint(tmp_path, "abc") is None
    assert not path.exists()


@pytest.mark.parametrize("place", [0, 31, 60, -1])
def test_a_state_with_one_other_bit_is_not_continued(tmp_path: Path, place: int) -> None:
    save_checkpoint(tmp_path, "abc", {"x": torch.ones(9)}, {"finished": 3})
    path = checkpoint_path(tmp_path, "abc")
    changed = bytearray(path.read_bytes())
    changed[place] ^= 1
    path.write_bytes(changed)

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
