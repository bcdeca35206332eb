"""A snapshot that was exported answers questions where it lies, and again from a store that imported it."""

import json
import os
from pathlib import Path

import pytest

from flows.cli import main
from tests.e2e.workplace import FOREIGN, Workplace


def test_an_export_answers_as_its_store_does(
    finished: Workplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    snapshot = finished.store.heads()["docs"]

    def cellar(*arguments: str) -> tuple[int, str, str]:
        return main(list(arguments)), *capsys.readouterr()

    def answers(store: str) -> object:
        code, out, err = cellar("--store", store, "--json", "ask", "the", "--snapshot", snapshot)
        assert code == 0, err
        return json.loads(out)

    for name in ("x.tar", "x"):
        assert cellar("--store", finished.url, "snapshot", "export", snapshot, name)[0] == 0
        assert cellar("--store", "taken", "snapshot", "import", name)[0] == 0

    expected = answers(finished.url)
    assert all(answers(place) == expected for place in ("x.tar", "taken"))
