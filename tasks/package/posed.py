"""Tasks as an evaluation posed them: cues, targets, the evidence of every condition, documents as ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.errors import BadPayload
from tasks.evaluation import AttachmentTask, Condition, Placement, Plan
from tasks.payload import fitting, pack_tensors, unpack_tensors

_PAYLOAD = "posed tasks"
_NO_EVIDENCE = -1


@dataclass(frozen=True)
class PosedTasks:
    """Everything about tasks that a core and stored memories do not know.

    `documents` holds token ids (uint16) of every element that the plan shows, by full name: what is
    attached as raw text, and how long each memory's document is.
    """

    tasks: Sequence[AttachmentTask]
    plan: Plan
    documents: Mapping[str, NDArray[np.uint16]]

    def to_bytes(self) -> bytes:
        """Safetensors payload; equal tasks give equal bytes.

        Tensors: `cue` (N, C), `target` (N, T) and `ids` (all documents one after another) int32, `offset`
        (N,) and `length` (a document each) int64, and for every condition `element/<condition>` (N,) the
        evidence's place among the documents, -1 for none, and `start/<condition>` (N,), both int64.
        """
        names = sorted(self.documents)
        place = {name: number for number, name in enumerate(names)}
        tensors = {
            "cue": torch.from_numpy(np.stack([task.cue for task in self.tasks]).astype(np.int32)),
            "target": torch.from_numpy(np.stack([task.target for task in self.tasks]).astype(np.int32)),
            "offset": torch.tensor([task.offset for task in self.tasks], dtype=torch.int64),
            "ids": torch.from_numpy(np.concatenate([self.documents[n] for n in names]).astype(np.int32)),
            "length": torch.tensor([len(self.documents[name]) for name in names], dtype=torch.int64),
        }
        for condition, placements in self.plan.items():
            shown = [_NO_EVIDENCE if p is None else place[p.element] for p in placements]
            tensors[f"element/{condition}"] = torch.tensor(shown, dtype=torch.int64)
            starts = [0 if p is None else p.start for p in placements]
            tensors[f"start/{condition}"] = torch.tensor(starts, dtype=torch.int64)
        record = {
            "tasks": [[task.name, task.kind, task.element] for task in self.tasks],
            "conditions": [condition.value for condition in self.plan],
            "documents": names,
        }
        return pack_tensors(tensors, what=_PAYLOAD, record=record)


def load_posed(payload: bytes) -> PosedTasks:
    """The tasks of a payload written by `PosedTasks.to_bytes`.

    Raises `BadPayload` when the bytes are none, or name evidence or positions that are not there.
    """
    tensors, record = unpack_tensors(payload, what=_PAYLOAD)
    with fitting(_PAYLOAD):
        names = _names(record["documents"])
        ids, lengths = _ids(tensors["ids"]), _numbers(tensors["length"], len(names))
        if min(lengths, default=0) < 1 or sum(lengths) != len(ids):
            raise ValueError("the documents' lengths are not those of their ids")
        parts = np.split(ids.astype(np.uint16), np.cumsum(lengths)[:-1])
        tasks = _tasks(tensors, record["tasks"])
        documents = dict(zip(names, parts, strict=True))
        plan = {
            Condition(name): _placements(tensors, str(name), names, len(tasks))
            for name in record["conditions"]
        }
        if not plan:
            raise ValueError("it has no condition")
    return PosedTasks(tasks, plan, documents)


def _tasks(tensors: Mapping[str, Tensor], described: Sequence[Sequence[str]]) -> list[AttachmentTask]:
    cue_NC, target_NT = _ids(tensors["cue"]), _ids(tensors["target"])
    if cue_NC.ndim != 2 or target_NT.ndim != 2 or not cue_NC.size or not target_NT.size:
        raise ValueError("cues and targets are no tables of ids")
    offsets = _numbers(tensors["offset"], len(described))
    _names([name for name, _, _ in described])
    return [
        AttachmentTask(
            str(name), str(kind), str(element), offset, cue.astype(np.int64), target.astype(np.int64)
        )
        for (name, kind, element), offset, cue, target in zip(
            described, offsets, cue_NC, target_NT, strict=True
        )
    ]


def _placements(
    tensors: Mapping[str, Tensor], condition: str, names: Sequence[str], count: int
) -> list[Placement | None]:
    elements = _numbers(tensors[f"element/{condition}"], count)
    starts = _numbers(tensors[f"start/{condition}"], count)
    if not all(_NO_EVIDENCE <= element < len(names) for element in elements):
        raise ValueError(f"{condition} shows an element that is not there")
    if not all(abs(start) < 2**31 for start in starts):
        raise ValueError(f"{condition} begins out of reach")
    return [
        None if element == _NO_EVIDENCE else Placement(names[element], start)
        for element, start in zip(elements, starts, strict=True)
    ]


def _ids(tensor: Tensor) -> NDArray[np.int32]:
    if tensor.dtype != torch.int32:
        raise ValueError(f"token ids are {tensor.dtype}")
    ids: NDArray[np.int32] = tensor.numpy()
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < 2**16:
        raise ValueError("a token id is out of range")
    return ids


def _numbers(tensor: Tensor, count: int) -> list[int]:
    if tensor.dtype != torch.int64 or tensor.shape != (count,):
        raise ValueError(f"a column is {tensor.dtype} {tuple(tensor.shape)}, not {count} numbers")
    numbers: list[int] = tensor.tolist()
    return numbers


def _names(given: Sequence[str]) -> list[str]:
    names = [str(name) for name in given]
    if len(set(names)) != len(names):
        raise ValueError("a name stands there twice")
    return names


def check_vocabulary(posed: PosedTasks, vocab_size: int) -> None:
    """Raise `BadPayload` where a task or document holds a token that the core's vocabulary lacks."""
    parts: list[NDArray[Any]] = [
        *posed.documents.values(),
        *(ids for task in posed.tasks for ids in (task.cue, task.target)),
    ]
    highest = max(int(ids.max()) for ids in parts)
    if highest >= vocab_size:
        raise BadPayload(
            f"the posed tasks hold token {highest}, the core knows {vocab_size}; make the package again"
        )
