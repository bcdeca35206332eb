"""`cellar cache` shows and clears the read cache of the settings; commands read through it from buckets."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.settings import load_settings
from store import ReadCache
from store.format import sha256

Cellar = Callable[..., tuple[int, str, str]]


def test_without_a_folder_there_is_no_cache(cellar: Cellar) -> None:
    code, out, _ = cellar("cache")

    assert code == 0
    assert "no read cache is set up; CELLAR_CACHE_DIR names a folder" in out
    assert load_settings(store="s3://bucket").store_cache() is None


def test_the_cache_is_shown_and_cleared(
    cellar: Cellar, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLAR_CACHE_DIR", "kept")
    monkeypatch.setenv("CELLAR_CACHE_BYTES", "1000")
    folder = workplace / "kept"
    ReadCache(folder, 1000).add({sha256(b"abc"): b"abc"})

    assert cellar("cache")[1] == f"{folder}: 1 entries, 3 of 1,000 bytes\n"
    shown = json.loads(cellar("--json", "cache")[1])
    assert shown == {"folder": str(folder), "entries": 1, "bytes": 3, "limit": 1000}
    assert cellar("cache", "clear")[1] == "removed 1 entries, 3 bytes\n"
    assert json.loads(cellar("--json", "cache")[1])["entries"] == 0


def test_a_folder_that_is_a_file_is_said_so(
    cellar: Cellar, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / "file").write_text("")
    monkeypatch.setenv("CELLAR_CACHE_DIR", "file")

    code, _, err = cellar("cache")

    assert code == 6
    assert "cannot use the read cache in" in err
    assert "name another folder with CELLAR_CACHE_DIR" in err


def test_only_stores_in_buckets_are_read_through_the_cache(
    workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLAR_CACHE_DIR", "~/cellar")
    cache = load_settings(store="s3://bucket/prefix").store_cache()

    assert cache is not None
    assert cache.folder == Path.home() / "cellar"
    assert load_settings(store="file:here").store_cache() is None
