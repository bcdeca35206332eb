"""What a head stands for is read from records that any program may have written."""

from pathlib import Path
from typing import Any

import pytest

from flows.provenance.corpora import made_from
from flows.updating.head_state import HeadState
from store import Element, Ref, Store


@pytest.mark.parametrize(
    ("params", "partitions"),
    [({"partition": "api"}, ["api"]), ({}, []), (None, []), (5, []), ("x", [])],
)
def test_a_report_says_by_its_parameters_whether_it_is_a_partition(
    tmp_path: Path, params: Any, partitions: list[str]
) -> None:
    store = Store.create(str(tmp_path))

    def publish(kind: str, name: str, **provenance: Any) -> Ref:
        element = Element(kind, name, name.encode(), media="text/plain", provenance=provenance)
        return store.publish([element], message=name)[0]

    report = publish("corpus", "docs.api/report", params=params)
    set_of_the_head = [publish("tokenizer", "bpe"), publish("codec", "c")]
    pinned = store.pin(set_of_the_head, message="all", run=made_from([report]))
    store.move_head("docs", pinned.id, expect=None)

    found = HeadState.read(store, "docs")

    assert found.corpora == {"docs.api": report}
    assert found.partitions("docs") == partitions
