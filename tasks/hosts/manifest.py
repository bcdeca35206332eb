"""What a host is: the digests of its tensors, its configuration and its tokenizer, however its files are cut.

The identity of a host is what it computes. The same tensors in one file or in five, a configuration that
another release of a library wrote with other white space, make the same manifest and so the same version.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from store import canonical_json
from tasks.errors import BadPayload
from tasks.hosts.folder import CONFIG, TOKENIZER

FORMAT = 1


@dataclass(frozen=True)
class TensorDigest:
    """One tensor of a host: its dtype as safetensors names it, its shape, the SHA-256 of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def numel(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class HostManifest:
    """Tensors by name, the configuration without what does not matter, and the SHA-256 of the tokenizer."""

    config: Mapping[str, Any]
    tokenizer: str
    tensors: Mapping[str, TensorDigest]

    @property
    def architecture(self) -> str:
        """The class of the model, e.g. LlamaForCausalLM."""
        return str(self.config["architectures"][0])

    @cached_property
    def parameters(self) -> int:
        """Numbers in all tensors; tied ones count once."""
        return sum(tensor.numel for tensor in self.tensors.values())

    def to_bytes(self) -> bytes:
        """Canonical JSON, the payload of the host's element."""
        tensors = {
            name: {"dtype": tensor.dtype, "shape": list(tensor.shape), "sha256": tensor.sha256}
            for name, tensor in self.tensors.items()
        }
        record = {
            "format": FORMAT,
            "config": dict(self.config),
            "tokenizer": self.tokenizer,
            "tensors": tensors,
        }
        return canonical_json(record)

    @classmethod
    def from_bytes(cls, payload: bytes) -> "HostManifest":
        """The manifest behind an element's payload; raises `BadPayload` when it is none."""
        try:
            record = json.loads(payload)
            if record["format"] != FORMAT:
                raise ValueError(f"its format is {record['format']!r}, not {FORMAT}")
            tensors = {
                str(name): TensorDigest(str(one["dtype"]), tuple(map(int, one["shape"])), str(one["sha256"]))
                for name, one in record["tensors"].items()
            }
            manifest = cls(record["config"], str(record["tokenizer"]), tensors)
            if not isinstance(manifest.architecture, str):
                raise TypeError("its configuration names no architecture")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise BadPayload(
                f"the payload is not the manifest of a host ({error}); check the reference"
            ) from error
        return manifest

    def difference(self, found: "HostManifest") -> str | None:
        """What the first difference of another manifest is, in words; None where both are the same host."""
        if self == found:
            return None
        if self.config != found.config:
            keys = sorted(self.config.keys() | found.config.keys())
            odd = [key for key in keys if self.config.get(key) != found.config.get(key)]
            return f"{CONFIG} differs in {', '.join(odd[:3])}"
        if self.tokenizer != found.tokenizer:
            return f"{TOKENIZER} differs"
        names = sorted(self.tensors.keys() | found.tensors.keys())
        odd = [name for name in names if self.tensors.get(name) != found.tensors.get(name)]
        return f"{len(odd)} of {len(names)} tensors differ, the first is {odd[0]}"
