"""A snapshot is evaluated, promoted and explained from what the store says alone."""

import hashlib
import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.workplace import Ended, Workplace

OF_THE_RUN = {"found", "wall_s", "peak_rss_mb", "settings", "stages"}


def as_json(end: Ended, code: int = 0) -> dict[str, Any]:
    assert end.code == code, end.err
    found: dict[str, Any] = json.loads(end.out)
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
def test_an_unknown_snapshot_or_core_is_one_sentence(
    inside: Callable[..., Ended], with_server: dict[str, str]
) -> None:
    nowhere = inside("eval", "run", "--snapshot", "head:nowhere")
    other = inside("eval", "run", "--snapshot", "docs", "--core", "codec/docs")
    alone = inside("eval", "run", "--core", "core/assembly")

    assert (nowhere.code, "no snapshot, tag or head 'head:nowhere'" in nowhere.err) == (4, True)
    assert (other.code, "codec/docs is no core" in other.err) == (4, True), other.err
    assert (alone.code, "--core goes with --snapshot" in alone.err) == (2, True)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_snapshot_is_promoted_if_it_meets_the_requirements(copy: Workplace, first_run: Ended) -> None:
    first = json.loads(first_run.out)
    found = first["nll"]["retrieved"]
    low, high = f"nll.retrieved<{found - 0.1:.4f}", f"conditions.retrieved.nll.high<{found + 9:.4f}"

    refused = copy.cellar("promote", "docs", "--to", "prod", "--require", low, "--require", high, "--json")
    none = copy.store.head("prod")
    moved = as_json(
        copy.cellar("promote", "docs", "--to", "prod", "--require", high, "--why", "good", "--json")
    )
    again = copy.cellar("promote", "docs", "--to", "prod", "--require", "nll.retrieved<=prod")

    verdicts = as_json(refused, code=8)["requirements"]
    assert (none, [verdict["holds"] for verdict in verdicts]) == (None, [False, True])
    assert "1 of 2 requirements did not hold" in refused.err
    assert (moved["moved"], copy.store.head("prod")) == (True, first["snapshot"])
    assert (again.code, "head prod is there already" in again.out) == (0, True)
    [position] = copy.store.head_log("prod")
    assert (position.note.action, position.note.why) == ("promote", "good")
    assert position.note.evaluation == first["refs"]["evaluation"][0]


@pytest.mark.slow
def test_what_is_not_evaluated_is_evaluated_or_refused(copy: Workplace, with_server: dict[str, str]) -> None:
    rest = ("docs", "--to", "prod", "--set", "evaluation.name=again", "--require", "tasks>=1")

    refused = copy.cellar("promote", *rest, "--no-evaluate")
    dry = as_json(copy.cellar("promote", *rest, "--dry-run", "--json", **with_server))
    [core] = copy.pin("core").refs
    digits = core.partition("@")[2][:8]
    chosen = ("--core", f"core/assembly@{digits}", "--no-evaluate", "--json")
    moved = as_json(copy.cellar("promote", *rest, *chosen))

    assert (refused.code, "cellar eval run --snapshot" in refused.err) == (4, True)
    assert (dry["holds"], dry["moved"]) == (True, False)
    assert str(dry["evaluation"]).startswith("evaluation/again@")
    assert (moved["moved"], moved["evaluation"], moved["core"]) == (True, dry["evaluation"], core)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_promotion_asks_for_requirements_and_signatures(copy: Workplace) -> None:
    copy.cellar("key", "generate", "lab")
    nothing = copy.cellar("promote", "docs", "--to", "prod")
    signed = ("promote", "docs", "--to", "prod", "--require", "tasks>1", "--require-signature", "lab.pub")

    before = copy.cellar(*signed)
    copy.cellar("snapshot", "sign", "docs", "--key", "lab")
    after = copy.cellar(*signed)

    assert (nothing.code, "cellar head move" in nothing.err) == (2, True)
    assert (before.code, after.code) == (5, 0), (before.err, after.err)


@pytest.mark.slow
def test_lineage_leads_from_a_memory_to_its_document_and_from_a_codec_to_what_it_made(
    finished: Workplace, inside: Callable[..., Ended], first_run: Ended
) -> None:
    summary = json.loads(first_run.out)
    [codec] = summary["refs"]["codec"]
    memory = summary["examples"][0]["document"]

    found = as_json(inside("lineage", memory, "--json"))
    made = as_json(inside("lineage", "codec/docs", "--down", "--json"))["made_with"]
    of_snapshot = inside("lineage", "head:docs")

    text = (finished.folder / "texts" / found["document"]["source"]).read_text().strip()
    assert found["document"]["digest"] == hashlib.sha256(text.encode()).hexdigest()
    assert found["document"]["corpora"]
    assert codec in [entry["element"] for entry in found["made_from"]]
    assert found["made"]["code"]["version"]
    assert found["made"]["run"]["settings"]["device"] == "cpu"
    assert {ref.partition("/")[0] for level in made["elements"] for ref in level} >= {
        "memory",
        "core",
        "index",
    }
    assert summary["snapshot"] in [entry["snapshot"] for entry in made["snapshots"]]
    assert (of_snapshot.code, summary["refs"]["evaluation"][0] in of_snapshot.out) == (0, True)


@pytest.mark.slow
def test_lineage_of_nothing_is_one_sentence(inside: Callable[..., Ended]) -> None:
    ends = [inside("lineage", what) for what in ("memory/nothing", "nowhere", "memory/*")]

    assert [end.code for end in ends] == [4, 4, 2]
    assert "name one, such as memory/" in ends[2].err
