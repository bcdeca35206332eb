"""Training states on local disk, so that an interrupted training continues bit for bit.

A state is one file named by the recipe's fingerprint: the SHA-256 of the rest, then safetensors with the
tensors of model and optimiser, and a JSON record with the fingerprint and the number of finished updates. The
data order must follow from seed and update number.
"""

import errno
import hashlib
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from store import Element, Ref, Store
from store.backend.local import storage_error
from store.errors import DiskFull
from tasks.errors import BadPayload
from tasks.payload import pack_tensors, unpack_tensors

_LOG = logging.getLogger(__name__)
CHECKPOINT_S = 15.0
"""Seconds of training between checkpoints."""
_WHAT = "checkpoint"
_DIGEST_BYTES = hashlib.sha256().digest_size
_MODEL = "model."
_OPTIMIZER = "optimizer."
_OF = "fingerprint"
"""In the record: of which recipe a state is, since a file may have been given another name."""


@dataclass(frozen=True)
class Checkpoints:
    """Where a training keeps its state, under which fingerprint, and how often (it costs about 50 ms)."""

    folder: Path
    fingerprint: str
    seconds: float = CHECKPOINT_S


def checkpoint_path(folder: Path, fingerprint: str) -> Path:
    """Where the state of the training with this fingerprint lies."""
    return folder / f"{fingerprint}.checkpoint"


def save_checkpoint(
    folder: Path, fingerprint: str, tensors: Mapping[str, Tensor], record: Mapping[str, Any]
) -> Path:
    """Write a training state; a reader sees the earlier state or this one, never a part.

    Raises as `write_whole`; the earlier state is then still in place.
    """
    payload = pack_tensors(tensors, what=_WHAT, record={**record, _OF: fingerprint})
    whole = hashlib.sha256(payload).digest() + payload
    return write_whole(checkpoint_path(folder, fingerprint), whole, what="a training checkpoint")


def write_whole(target: Path, payload: bytes, *, what: str) -> Path:
    """Write a file; a reader sees the earlier content or this one, never a part.

    Raises `DiskFull`, which calls the file `what`, when its folder has no room, and another
    `StorageUnavailable` when it cannot be written there.
    """
    # Two trainings of one recipe write the same states; each in a file of its own until it is whole.
    partial = target.with_suffix(f".{os.getpid()}.partial")
    try:
        try:
            _write(partial, payload, target)
        except FileNotFoundError:  # the other training published, and removed this as left behind
            _write(partial, payload, target)
    except OSError as error:
        with suppress(OSError):  # a file may be where the folder should be
            partial.unlink(missing_ok=True)
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise DiskFull(
                f"no space left in {target.parent} for {what} of {len(payload)} bytes; "
                "free some or set another work directory"
            ) from error
        raise storage_error(error, "write", target.name, f"file:{target.parent}") from error
    return target


def _write(partial: Path, payload: bytes, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with partial.open("wb") as file:
        file.write(payload)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(target)


def load_checkpoint(folder: Path, fingerprint: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The state saved for this fingerprint, or None; a damaged one is removed, and training starts over.

    So is one of another fingerprint, under whose name it may lie. Raises `StorageUnavailable` for one that
    cannot be read.
    """
    path = checkpoint_path(folder, fingerprint)
    if not path.exists():
        return None
    try:
        whole = path.read_bytes()
    except OSError as error:
        raise storage_error(error, "read", path.name, f"file:{folder}") from error
    try:
        digest, payload = whole[:_DIGEST_BYTES], whole[_DIGEST_BYTES:]
        if hashlib.sha256(payload).digest() != digest:
            raise BadPayload("its bytes are not those that were written")
        tensors, record = unpack_tensors(payload, what=_WHAT)
        if record.pop(_OF, fingerprint) != fingerprint:
            raise BadPayload("it is of other work")
        return tensors, record
    except BadPayload as error:
        _LOG.warning("%s is damaged (%s); training starts over", path, error)
        path.unlink(missing_ok=True)
        return None


def publish_trained(store: Store, element: Element, checkpoints: Checkpoints | None, *, message: str) -> Ref:
    """Publish what a training made, and only then remove the state that it would continue from."""
    [published] = store.publish([element], message=message)
    discard(checkpoints)
    return published


def find_trained(
    store: Store, recipe: str, checkpoints: Checkpoints | None, *, name: str | None = None
) -> Ref | None:
    """What a training of this fingerprint published, or None; see `store.Catalog.find` for `name`.

    Where it is published, a state that is still there is removed: a training that is killed after it
    published leaves one.
    """
    row = store.catalog().find(recipe, name=name)
    if row is None:
        return None
    discard(checkpoints)
    return row.ref


def discard(checkpoints: Checkpoints | None) -> None:
    """Remove the state of work that is published, and what a kill left of one half written."""
    if checkpoints is not None:
        discard_files(checkpoints.folder, f"{checkpoints.fingerprint}.checkpoint")
        discard_files(checkpoints.folder, f"{checkpoints.fingerprint}.*.partial")


def discard_files(folder: Path, pattern: str) -> None:
    """Remove files of finished work; the work is no worse for one that cannot be removed, so this warns."""
    try:
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)
    except OSError as error:
        _LOG.warning("finished work is not removed from %s (%s)", folder, error.strerror)


def training_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """All tensors that a training needs to continue: the model's state dict and the optimiser's moments."""
    tensors = {f"{_MODEL}{name}": value for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{_OPTIMIZER}{name}.{key}"] = value
    return tensors


def restore_training(model: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put the tensors of `training_tensors` back into a model and an optimiser of the same shapes."""
    model.load_state_dict({k.removeprefix(_MODEL): v for k, v in tensors.items() if k.startswith(_MODEL)})
    for name, parameter in model.named_parameters():
        prefix = f"{_OPTIMIZER}{name}."
        state = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        if state:
            # Adam keeps its step counter on the CPU and its moments beside the parameter.
            optimizer.state[parameter] = {
                key: value.clone() if value.dim() == 0 else value.to(parameter.device, copy=True)
                for key, value in state.items()
            }
