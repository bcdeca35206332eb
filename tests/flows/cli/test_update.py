"""What `cellar update` refuses is said before a Prefect API is started."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Element, Store

Cellar = Callable[..., tuple[int, str, str]]


@pytest.fixture
def head(workplace: Path) -> Store:
    """A store whose head docs holds a codec, a tokenizer and a memory."""
    store = Store.create("file:build/store")
    kinds = ("codec", "tokenizer", "memory")
    refs = store.publish([Element(kind, "one", b"x", media="text/plain") for kind in kinds], message="m")
    report = store.publish(
        [Element("corpus", "docs/report", b"{}", media="application/json", provenance={"params": {}})],
        message="r",
    )
    pinned = store.pin(refs, message="p", run={"corpus": [str(one) for one in report]})
    store.move_head("docs", pinned.id, expect=None)
    (workplace / "a.jsonl").write_text(json.dumps({"id": "x", "text": "some words"}) + "\n")
    return store


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--drop-partition", "b"), 2, "was made from docs and not from partitions of docs"),
        (
            ("--drop-partition", "b", "--set", "corpus.name=other", "--head", "new"),
            4,
            "no partition b to drop",
        ),
    ],
)
def test_what_does_not_fit_the_head_is_refused_before_anything_is_started(
    cellar: Cellar,
    head: Store,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    reason: str,
) -> None:
    def started(*_: object) -> None:
        raise AssertionError("an API was started")

    monkeypatch.setattr("flows.serving.api.prefect_api", started)
    source = ("--set", "corpus.reader=jsonl", "--set", "corpus.path={partition}.jsonl")
    ended, _, err = cellar("update", *source, *arguments)
    assert (ended, reason in err) == (code, True), err
