"""An evaluation that a flow found published is shown, or refused in a sentence."""

from pathlib import Path

import pytest

from flows.cli.facts_figures import FACTS
from flows.cli.published import show_published
from flows.cli.session import Session
from store import Element, Store
from tasks.errors import BadPayload


@pytest.mark.parametrize("payload", [b"{}", b"[]", b"{", b'{"facts": 7, "new": []}', b"\xff"])
def test_a_summary_that_cannot_be_shown_is_refused(tmp_path: Path, payload: bytes) -> None:
    store = Store.create(f"file:{tmp_path / 'store'}")
    forged = Element("evaluation", "few.facts", payload, media="application/json")
    [ref] = store.publish([forged], message="forged")
    session = Session(store_url=store.url)

    with pytest.raises(BadPayload, match=r"evaluation/few\.facts@.* is no summary that can be shown"):
        show_published(session, {"evaluation": str(ref)}, tmp_path, FACTS)
