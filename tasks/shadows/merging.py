"""A host with a shadow added to its weights, as a Hugging Face directory of its own."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from store import Ref
from store.transfer import folder_at
from tasks.errors import BadHost, UnfitHost
from tasks.payload import save_weights
from tasks.progress import Progress, silent
from tasks.shadows.card import CARD, digests, merge_card
from tasks.shadows.shadow import Shadow

_WEIGHTS = "*.safetensors"
_BESIDE = "*.json"


def merge(
    folder: Path,
    host: Ref,
    shadows: Sequence[tuple[Ref, Shadow]],
    out: Path,
    *,
    progress: Progress = silent,
) -> int:
    """Write the host of `folder` with W + alpha D for each shadowed W, of all shadows, into the folder `out`.

    Tensors keep their dtype: sums are made in float32 and rounded once. Configuration, tokenizer and other
    JSON files are copied, and a model card says what is in the folder and what tells whether it is; equal
    inputs give equal bytes. `progress` counts files of weights. Returns how many matrices were changed.

    Raises `BadHost` when a matrix is not in the files under its name, `UnfitHost` when a sum is no finite
    number in their dtype, and as `store.transfer.folder_at` where `out` is there already.
    """
    changes: dict[str, list[tuple[Tensor, float]]] = {}
    for _, shadow in shadows:
        for name, delta, alpha, active in zip(
            shadow.names, shadow.deltas, shadow.alphas, shadow.active, strict=True
        ):
            if active:
                changes.setdefault(f"{name}.weight", []).append((delta, alpha))
    with folder_at(out) as partial:
        for path in sorted(folder.glob(_BESIDE)):
            shutil.copyfile(path, partial / path.name)
        files = sorted(folder.glob(_WEIGHTS))
        found: set[str] = set()
        for done, path in enumerate(files, start=1):
            found |= _merge_file(path, changes, partial / path.name)
            progress(done, len(files))
        if found != set(changes):
            missing = min(set(changes) - found)
            raise BadHost(f"{folder} has no tensor {missing}; save the model again with transformers")
        card = merge_card(host, shadows, digests(partial, _WEIGHTS), len(found))
        (partial / CARD).write_text(card, encoding="utf-8")
    return len(found)


def _merge_file(path: Path, changes: dict[str, list[tuple[Tensor, float]]], target: Path) -> set[str]:
    """Write one file of weights again with its part of the changes; returns the names it had of them."""
    tensors: dict[str, Tensor] = {}
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                tensors[name] = file.get_tensor(name)
    except (SafetensorError, OSError, ValueError) as error:
        raise BadHost(f"{path} cannot be read ({str(error)[:100]}); fetch or save the model again") from error
    mine = changes.keys() & tensors.keys()
    for name in mine:
        summed = tensors[name].float()
        for delta, alpha in changes[name]:
            if delta.shape != summed.shape:
                raise BadHost(f"{name} in {path} is {tuple(summed.shape)}, its shadow {tuple(delta.shape)}")
            summed = torch.add(summed, delta.cpu(), alpha=alpha)
        tensors[name] = summed.to(tensors[name].dtype)
        if not bool(torch.isfinite(tensors[name]).all()):
            raise UnfitHost(
                f"with its shadows {name} has numbers that {str(tensors[name].dtype).removeprefix('torch.')} "
                "does not hold; attach them instead, or write them in smaller steps"
            )
    save_weights(tensors, target)
    return set(mine)
