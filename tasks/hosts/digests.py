"""The manifest of the host in a folder, from every byte of its tensors."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from store import canonical_json
from tasks.errors import BadHost
from tasks.hosts.folder import TOKENIZER, read_config, read_json, weight_files
from tasks.hosts.manifest import HostManifest, TensorDigest
from tasks.progress import Progress, silent

_ASIDE = ("transformers_version", "_name_or_path", "dtype", "torch_dtype", "_attn_implementation", "auto_map")
"""Keys of a configuration that say who saved it, or how it is loaded, and not what it computes."""


def read_manifest(folder: Path, *, progress: Progress = silent) -> HostManifest:
    """The manifest of a host's folder, from every byte of its tensors; `progress` counts megabytes.

    Raises `BadHost` for a folder that holds no host that can be used here.
    """
    config = {key: value for key, value in read_config(folder).items() if key not in _ASIDE}
    tokenizer = hashlib.sha256(canonical_json(read_json(folder / TOKENIZER))).hexdigest()
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


def _digests(path: Path) -> Iterator[tuple[str, TensorDigest, int]]:
    try:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                dtype = file.get_slice(name).get_dtype()
                tensor = file.get_tensor(name).contiguous()
                raw = tensor.reshape(-1).view(torch.uint8).numpy()
                shape = tuple(tensor.shape)
                yield name, TensorDigest(dtype, shape, hashlib.sha256(raw.data).hexdigest()), raw.nbytes
    except (SafetensorError, OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BadHost(f"{path} is no safetensors file ({reason}); fetch or save the model again") from error
