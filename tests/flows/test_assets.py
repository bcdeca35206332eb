"""What a run made is told to Prefect as assets with their sources, and nothing depends on that."""

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.engine import flow
from flows.pins import Pin
from flows.place import open_store
from flows.settings import Settings, load_settings
from store import Element, Ref, Store

_LIMIT_S = 60.0


def _publish(settings: Settings, payload: str) -> Pin:
    store = open_store(settings)
    [tokenizer] = store.publish([Element("tokenizer", "t", b"t", media="text/plain")], message="tokenizer")
    codec = Element("codec", "c", payload.encode(), media="text/plain", requires=(tokenizer.version,))
    [made] = store.publish([codec], message=f"codec {payload}")
    pinned = store.pin([tokenizer, made], message="both")
    return Pin(stage="codec", refs=(str(made),), snapshot=pinned.id)


publish = flow(_publish, name="publish-for-assets")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    Store.create(str(tmp_path / "store"))
    return load_settings(store=f"file:{tmp_path / 'store'}")


@pytest.fixture
def events(prefect_server: str) -> Callable[[str, int], list[dict[str, Any]]]:
    """The asset events about a store, as soon as there are so many of what was materialised."""

    def ask(store: str, least: int) -> list[dict[str, Any]]:
        deadline = time.monotonic() + _LIMIT_S
        wanted = {"filter": {"event": {"prefix": ["prefect.asset.materialization"]}}, "limit": 50}
        while time.monotonic() < deadline:
            answer = httpx.post(f"{prefect_server}/events/filter", json=wanted).json()
            found = [event for event in answer["events"] if store in event["resource"]["prefect.resource.id"]]
            if len(found) >= least:
                return found
            time.sleep(0.05)  # events travel by way of another process: there is nothing to wait on
        raise AssertionError(f"fewer than {least} materialisations")

    return ask


def test_what_a_run_made_becomes_assets_with_their_sources(
    settings: Settings, events: Callable[[str, int], list[dict[str, Any]]]
) -> None:
    first = publish(settings, "one")
    publish(settings, "one")  # finds everything done
    second = publish(settings, "two")

    store = Store.open(settings.store)
    place = f"cellar://{store.history.at(0).id}"
    [tokenizer] = store.catalog().versions("tokenizer/t")
    found = {event["resource"]["prefect.resource.id"]: event for event in events(place, 5)}
    codecs = [Ref.parse(pin.refs[0]) for pin in (first, second)]
    assert found.keys() == {
        f"{place}/tokenizer/{tokenizer.version}",
        *(f"{place}/codec/{codec.version}" for codec in codecs),
        *(f"{place}/snapshot/{pin.snapshot}" for pin in (first, second)),
    }
    made = found[f"{place}/codec/{codecs[0].version}"]
    assert made["payload"]["ref"] == first.refs[0]
    assert made["resource"]["prefect.resource.name"] == "codec/c"
    assert _sources(made) == {f"{place}/tokenizer/{tokenizer.version}"}
    assert _sources(found[f"{place}/snapshot/{second.snapshot}"]) == {
        f"{place}/tokenizer/{tokenizer.version}",
        f"{place}/codec/{codecs[1].version}",
    }
    assert len(json.dumps(made)) < 5_000


def _sources(event: dict[str, Any]) -> set[str]:
    return {
        related["prefect.resource.id"]
        for related in event["related"]
        if related["prefect.resource.role"] == "asset"
    }


def _lose_store(settings: Settings) -> Pin:
    (Path(settings.store.removeprefix("file:")) / "format.json").unlink()
    return Pin(stage="codec")


lose_store = flow(_lose_store, name="lose-store")


@pytest.mark.usefixtures("prefect_server")
def test_a_run_whose_assets_cannot_be_told_of_is_done_all_the_same(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "flows.assets"):
        assert lose_store(settings) == Pin(stage="codec")

    assert "were not told of: there is no store" in caplog.text
