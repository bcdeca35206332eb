"""Domains one after another: what a later one lacks is said before any is written."""

from pathlib import Path

import pytest

from flows.params import Params
from flows.settings import Settings, load_settings
from flows.write_shadow import _write
from store import Store
from tasks.anneal import stages
from tasks.errors import TooLittleText
from tasks.hosts import publish_host
from tests.tiny_host import write_tiny_host

HELD = {"selection_tokens": 256, "guard_tokens": 512, "sealed_tokens": 512}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    folder = write_tiny_host(tmp_path / "hosts" / "tiny")
    publish_host(Store.create(f"file:{tmp_path / 'store'}"), folder, "tiny")
    places = {"HOSTS": folder.parent, "STORE": f"file:{tmp_path / 'store'}", "WORK_DIR": tmp_path / "work"}
    for name, value in places.items():
        monkeypatch.setenv(f"CELLAR_{name}", str(value))
    monkeypatch.setenv("CELLAR_DEVICE", "cpu")
    return load_settings()


@pytest.fixture
def params(tmp_path: Path) -> Params:
    casks = "".join(f"the {n}th cask is cool and dark; keep it shut.\n" for n in range(300))
    texts = {"a": casks, "b": casks.upper(), "short": "the text is short. " * 12, "other": casks[::-1]}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    shadow = {"name": "x", "held": HELD, "layers": [0, 1], "chunk_tokens": 32, "chunks": 3}
    anneal = {
        "domains": {name: {"path": str(tmp_path / name)} for name in ("a", "b", "short")},
        "retention": [{"path": str(tmp_path / "other")}],
        "held": HELD,
        "passages": 4,
        "passage_tokens": 32,
        "scored": 16,
        "evaluations": 8,
        "sealed": {"chunk_tokens": 32},
    }
    host = {"name": "tiny", "dtype": "float32"}
    return Params.model_validate({"host": host, "shadow": shadow, "anneal": anneal})


def test_a_domain_that_is_too_short_is_told_before_one_is_written_whatever_is_there(
    settings: Settings, params: Params
) -> None:
    learned = stages(params.shadow, params.anneal)
    first = params.model_copy(update={"shadow": learned[0]})
    with pytest.raises(TooLittleText):
        _write(settings, first, learned, sealed=True)
    written = _write(settings, first, learned[:1], sealed=True)
    assert _write(settings, first, learned, sealed=True) == written
    second = params.model_copy(update={"shadow": learned[1].model_copy(update={"onto": (written,)})})
    with pytest.raises(TooLittleText):
        _write(settings, second, learned[1:], sealed=True)
    assert [row.ref.name for row in Store.open(settings.store).catalog().rows("shadow")] == [
        "shadow/x.a.written"
    ]
