"""A snapshot is evaluated, promoted and explained from what the store says alone."""

import json
import shutil

import pytest

from tests.e2e.workplace import Ended, Workplace

OF_THE_RUN = {"found", "wall_s", "peak_rss_mb", "settings", "stages"}


def as_json(end: Ended, code: int = 0) -> dict[str, object]:
    assert end.code == code, end.err
    found: dict[str, object] = json.loads(end.out)
    return found


@pytest.mark.slow
def test_a_snapshot_is_evaluated_without_any_pin_file(
    copy: Workplace, first_run: Ended, with_server: dict[str, str]
) -> None:
    shutil.rmtree(copy.folder / "build/demo/pins")
    before = copy.commits

    summary = as_json(copy.cellar("eval", "run", "--snapshot", "head:docs", "--json", **with_server))

    first = json.loads(first_run.out)
    refs, known = summary.pop("refs"), first.pop("refs")
    assert {stage: sorted(found) for stage, found in refs.items()} == {
        stage: sorted(found) for stage, found in known.items()
    }
    assert all(summary[name] == first[name] for name in first.keys() - OF_THE_RUN)
    assert summary["found"] == ["evaluation"]
    assert copy.commits == before
    assert json.loads((copy.folder / "results/summary.json").read_text())["nll"] == first["nll"]
    assert not (copy.folder / "build/demo/pins/evaluation.json").exists()


@pytest.mark.slow
def test_an_unknown_snapshot_or_core_is_one_sentence(copy: Workplace, with_server: dict[str, str]) -> None:
    nowhere = copy.cellar("eval", "run", "--snapshot", "head:nowhere", **with_server)
    other = copy.cellar("eval", "run", "--snapshot", "docs", "--core", "codec/docs", **with_server)
    alone = copy.cellar("eval", "run", "--core", "core/assembly")

    assert (nowhere.code, "no snapshot, tag or head 'head:nowhere'" in nowhere.err) == (4, True)
    assert (other.code, "names 0 cores" in other.err) == (4, True), other.err
    assert (alone.code, "--core goes with --snapshot" in alone.err) == (2, True)
