"""An evaluation leaves its store as a package, and gives the same losses where nothing else is at hand."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.workplace import Workplace


@pytest.mark.slow
def test_a_package_is_scored_where_there_is_no_store(
    copy: Workplace, with_server: dict[str, str], tmp_path: Path
) -> None:
    before = json.loads((copy.folder / "build/demo/summary.json").read_text())
    tip = copy.store.tip()

    made = copy.cellar("eval", "package", "package.tar", "--json", **with_server)

    assert made.code == 0, made.err
    record = json.loads(made.out)
    assert record["nll"] == before["nll"]
    assert copy.store.tip() == tip
    elsewhere = replace(copy, folder=tmp_path / "elsewhere")
    elsewhere.folder.mkdir()
    shutil.move(copy.folder / "package.tar", elsewhere.folder)

    again = elsewhere.cellar("eval", "run", "--package", "package.tar", "--json")

    assert again.code == 0, again.err
    found = json.loads(again.out)
    assert found["identical"] is True
    assert {name: loss["found"] for name, loss in found["conditions"].items()} == pytest.approx(
        before["nll"], abs=1e-12
    )
    assert not elsewhere.path.exists()
    assert json.loads((elsewhere.folder / "results/reproduction.json").read_text()) == found
    shown = elsewhere.cellar("eval", "show", "results")
    assert (shown.code, "every loss is the packaged one, bit for bit" in shown.out) == (0, True)


def test_what_cannot_be_packaged_or_scored_is_said(copy: Workplace) -> None:
    (copy.folder / "taken").mkdir()
    taken = copy.cellar("eval", "package", "taken")
    assert (taken.code, "taken exists and is left as it is" in taken.err) == (2, True)
    lost = copy.cellar("eval", "package", "nowhere/package.tar")
    assert (lost.code, "there is no folder nowhere" in lost.err) == (2, True)

    mixed = copy.cellar("eval", "run", "--package", "taken", "--snapshot", "prod")
    assert (mixed.code, "a package says itself" in mixed.err) == (2, True)

    empty = copy.cellar("eval", "run", "--package", "taken")
    assert empty.code == 2
    assert "is no export" in empty.err
