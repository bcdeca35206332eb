"""The payload of posed tasks: what goes in comes out, and what fits nothing is refused."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from tasks.errors import BadPayload
from tasks.evaluation import AttachmentTask, Condition, Placement
from tasks.package import PosedTasks, load_posed
from tasks.package.posed import check_vocabulary
from tasks.payload import pack_tensors, unpack_tensors

WHAT = "posed tasks"


def posed() -> PosedTasks:
    tasks = [
        AttachmentTask(f"memory/a/{n}", "prefix", "memory/a", 4 + n, np.arange(4), np.arange(2) + n)
        for n in range(3)
    ]
    shown = [Placement("memory/a", 0), Placement("memory/b", -2), None]
    plan = {Condition.NONE: [None] * 3, Condition.RIGHT: shown}
    documents = {"memory/a": np.arange(9, dtype=np.uint16), "memory/b": np.array([65_000], np.uint16)}
    return PosedTasks(tasks, plan, documents)


def test_posed_tasks_come_back_as_they_were() -> None:
    given = posed()
    payload = given.to_bytes()
    found = load_posed(payload)

    assert found.to_bytes() == payload
    assert found.plan == given.plan
    assert list(found.plan) == list(given.plan)
    assert [(t.name, t.kind, t.element, t.offset) for t in found.tasks] == [
        (t.name, t.kind, t.element, t.offset) for t in given.tasks
    ]
    for name, ids in given.documents.items():
        assert found.documents[name].tolist() == ids.tolist()
    assert [t.target.tolist() for t in found.tasks] == [[0, 1], [1, 2], [2, 3]]


def _set(name: str, value: Tensor) -> Callable[[dict[str, Tensor], dict[str, object]], None]:
    return lambda tensors, record: tensors.update({name: value})


@pytest.mark.parametrize(
    "change",
    [
        _set("element/right", torch.tensor([0, 2, -1])),
        _set("element/right", torch.tensor([0, -2, -1])),
        _set("element/right", torch.tensor([0, 1])),
        _set("start/right", torch.tensor([0, 2**40, 0])),
        _set("length", torch.tensor([10, 0])),
        _set("length", torch.tensor([8, 1])),
        _set("ids", torch.full((10,), -1, dtype=torch.int32)),
        _set("ids", torch.full((10,), 2**16, dtype=torch.int32)),
        _set("cue", torch.zeros((3, 0), dtype=torch.int32)),
        _set("cue", torch.zeros((2, 4), dtype=torch.int32)),
        _set("target", torch.zeros((3, 2), dtype=torch.float32)),
        lambda tensors, record: record.update(conditions=["nothing"]),
        lambda tensors, record: record.update(conditions=[]),
        lambda tensors, record: record.update(documents=["memory/a", "memory/a"]),
        lambda tensors, record: record.update(tasks=[["one", "prefix", "memory/a"]] * 3),
        lambda tensors, record: record.update(tasks=[["one", "prefix"]] * 3),
        lambda tensors, record: record.pop("tasks"),
        lambda tensors, record: tensors.pop("offset"),
    ],
)
def test_a_payload_that_does_not_fit_itself_is_refused(
    change: Callable[[dict[str, Tensor], dict[str, object]], None],
) -> None:
    tensors, record = unpack_tensors(posed().to_bytes(), what=WHAT)
    change(tensors, record)

    with pytest.raises(BadPayload):
        load_posed(pack_tensors(tensors, what=WHAT, record=record))


def test_a_token_that_the_core_lacks_is_refused() -> None:
    check_vocabulary(posed(), 65_001)

    with pytest.raises(BadPayload, match="65000"):
        check_vocabulary(posed(), 65_000)
