"""The manifest of the host in a folder, from every byte of its tensors."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from store import canonical_json
from tasks.errors import BadHost, BrokenHost
from tasks.hosts.folder import TOKENIZER, read_config, read_json, weight_files
from tasks.hosts.manifest import HostManifest, TensorDigest
from tasks.progress import Progress, silent

_LARGEST = torch.finfo(torch.bfloat16).max
"""A host computes in bfloat16 or float32, and what lies beyond the smaller range would become infinite."""

_ASIDE = ("transformers_version", "_name_or_path", "dtype", "torch_dtype", "_attn_implementation", "auto_map")
"""Keys of a configuration that say who saved it, or how it is loaded, and not what it computes."""


def read_manifest(folder: Path, *, progress: Progress = silent) -> HostManifest:
    """The manifest of a host's folder, from every byte of its tensors; `progress` counts megabytes.

    Raises `BadHost` for a folder that holds no host that can be used here, and `BrokenHost` where a weight is
    no finite number.
    """
    config = {key: value for key, value in read_config(folder).items() if key not in _ASIDE}
    tokenizer = tokenizer_digest(folder)
    files = weight_files(folder)
    total = max(1, sum(path.stat().st_size for path in files) // 10**6)
    tensors: dict[str, TensorDigest] = {}
    done = 0
    for path in files:
        for name, digest, size in _digests(path):
            if name in tensors:
                raise BadHost(f"{folder}: tensor {name} is in two files; keep the one that is meant")
            tensors[name] = digest
            done += size
            progress(min(total, done // 10**6), total)
    return HostManifest(config, tokenizer, dict(sorted(tensors.items())))


def tokenizer_digest(folder: Path) -> str:
    """SHA-256 over the JSON of a host's tokenizer, however it is laid out; raises `BadHost` for none."""
    return hashlib.sha256(canonical_json(read_json(folder / TOKENIZER))).hexdigest()


def _digests(path: Path) -> Iterator[tuple[str, TensorDigest, int]]:
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                dtype = file.get_slice(name).get_dtype()
                tensor = file.get_tensor(name).contiguous()
                _refuse_what_is_not_finite(name, tensor, path)
                raw = tensor.reshape(-1).view(torch.uint8).numpy()
                shape = tuple(tensor.shape)
                yield name, TensorDigest(dtype, shape, hashlib.sha256(raw.data).hexdigest()), raw.nbytes
    except (SafetensorError, OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadHost(f"{path} is no safetensors file ({reason}); fetch or save the model again") from error


def _refuse_what_is_not_finite(name: str, tensor: torch.Tensor, path: Path) -> None:
    """Look at the smallest and the largest number, NaN where any is: it takes a fifth of a digest's time."""
    if not tensor.is_floating_point() or not tensor.numel():
        return
    numbers = tensor.float() if tensor.element_size() == 1 else tensor  # eight bits have no comparison
    for number in (float(bound) for bound in torch.aminmax(numbers)):
        if not abs(number) <= _LARGEST:
            raise BrokenHost(
                f"{path}: tensor {name} holds {number:g}, no finite number of those that a host computes in; "
                "fetch or save the model again"
            )
