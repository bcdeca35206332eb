"""A published evaluation is shown; what is wrong with it is told apart from what is wrong with us."""

import io
import sys
from pathlib import Path

import pytest

from flows.cli.published import Figures, show_published
from flows.cli.session import Session
from store import Element, Store
from tasks.errors import BadPayload

KIND = Figures("x.json", "drink", lambda result: [result["drink"]])


def show(tmp_path: Path, payload: str) -> None:
    store = Store.open_or_create(f"file:{tmp_path / 'store'}")
    element = Element("evaluation", "x", payload.encode(), media="application/json")
    [ref] = store.publish([element], message="x")
    show_published(Session(store_url=store.url), {"evaluation": str(ref)}, tmp_path, KIND)


@pytest.mark.parametrize("payload", ["{}", "[]", "no JSON"])
def test_what_is_no_summary_is_said_of_the_store(tmp_path: Path, payload: str) -> None:
    with pytest.raises(BadPayload, match="is no summary that can be shown; use a store that you trust"):
        show(tmp_path, payload)


def test_a_letter_that_a_terminal_cannot_show_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    with pytest.raises(UnicodeEncodeError):
        show(tmp_path, '{"drink": "caf\u00e9"}')
