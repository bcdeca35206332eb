"""The dense index: FAISS inner products between a cue's key and the mean-pooled cells of every memory.

Keys are centred on their mean and normalised, so an inner product is a cosine. They are stored as plain
float32 and the flat FAISS index is made again on load: no FAISS file is ever read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch  # Before faiss: torch's OpenMP runtime must be the first one loaded (pinned by a test).

import faiss  # isort: skip

from tasks.codec import Codec
from tasks.retrieval import arrays

_WHAT = "retrieval dense keys"


class CueEncoder(Protocol):
    """Anything that maps cues (integer ids) to keys (Q, C) float32 in the space of mean-pooled cells."""

    def __call__(self, cues: Sequence[np.ndarray]) -> np.ndarray: ...


class CodecCueEncoder:
    """Keys of cues by the frozen codec's encoder: the mean cell of the cue's blocks, the last one filled up
    by repeating the cue, because an encoder trained on completed blocks has seen no padding."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    @torch.no_grad()
    def __call__(self, cues: Sequence[np.ndarray]) -> np.ndarray:
        block = self.codec.architecture.block_tokens
        count_Q = np.array([-(-len(cue) // block) for cue in cues], dtype=np.int64)
        filled = [np.resize(cue, count * block) for cue, count in zip(cues, count_Q, strict=True)]
        tokens_BT = torch.from_numpy(np.concatenate(filled).astype(np.int64).reshape(-1, block))
        cells_BC = self.codec.encode(tokens_BT).numpy()
        first_Q = np.cumsum(count_Q) - count_Q
        key_QC: np.ndarray = np.add.reduceat(cells_BC, first_Q) / count_Q.astype(np.float32)[:, None]
        return key_QC


@dataclass(frozen=True)
class DenseIndex:
    """key_EC (float32, unit rows) of the elements in store order and centre_C (float32), their mean
    before."""

    key_EC: np.ndarray
    centre_C: np.ndarray

    @classmethod
    def of(cls, mean_EC: np.ndarray) -> "DenseIndex":
        """The index of mean-pooled cells (E, C) float32."""
        centre_C = mean_EC.astype(np.float64).mean(0).astype(np.float32)
        return cls(_unit(mean_EC - centre_C), centre_C)

    @cached_property
    def _flat(self) -> faiss.IndexFlatIP:
        flat = faiss.IndexFlatIP(self.key_EC.shape[1])
        flat.add(np.ascontiguousarray(self.key_EC))
        return flat

    def __len__(self) -> int:
        return len(self.key_EC)

    def keys(self, element_A: np.ndarray) -> np.ndarray:
        """The keys (A, C) float32 of these elements."""
        key_AC: np.ndarray = self.key_EC[element_A]
        return key_AC

    def queries(self, key_QC: np.ndarray) -> np.ndarray:
        """Cue keys brought to the index's centre and length: float32 (Q, C)."""
        return _unit(key_QC - self.centre_C)

    def search(self, query_QC: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Cosines (float32) and element numbers (int64) of the k nearest of each query, (Q, k)."""
        cosine_Qk, element_Qk = self._flat.search(np.ascontiguousarray(query_QC), min(k, len(self.key_EC)))
        return cosine_Qk, element_Qk

    def to_bytes(self) -> bytes:
        """Safetensors payload."""
        return arrays.to_bytes({"centre": self.centre_C, "key": self.key_EC}, what=_WHAT, record={})

    @classmethod
    def from_bytes(cls, payload: bytes | memoryview) -> "DenseIndex":
        """Views into the payload; raises BadPayload where it does not hold dense keys."""
        parts, _ = arrays.from_bytes(payload, what=_WHAT)
        with arrays.reading(_WHAT):
            centre_C = arrays.part(parts, "centre", np.float32, None)
            key_EC = arrays.part(parts, "key", np.float32, None, len(centre_C))
            arrays.check_finite(centre_C, "centre")
            arrays.check_finite(key_EC, "key")
            return cls(key_EC, centre_C)


def _unit(key_EC: np.ndarray) -> np.ndarray:
    norm_E1 = np.linalg.norm(key_EC.astype(np.float64), axis=1, keepdims=True)
    unit: np.ndarray = (key_EC / np.maximum(norm_E1, 1e-12)).astype(np.float32)
    return unit
