"""Sealed text is scored once for every condition, and the summary says what the losses say."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from store import Store
from tasks.anneal import (
    AnnealParams,
    ChunkLoss,
    chunk_losses,
    consolidate,
    evaluate_shadow,
    read_texts,
    sealed_parts,
)
from tasks.anneal.cards import continuation
from tasks.anneal.params import SealedParams
from tasks.anneal.sealed import against, anatomy, compared
from tasks.errors import StaleInputs, UnfitHost
from tasks.hosts import Host
from tasks.shadows import HeldParams, Shadow, ShadowParams, TextSource, attached, open_shadow, write_domain
from tasks.tables import load_records
from tests.tasks.killing import Killed, stop_at

HELD = HeldParams(selection_tokens=256, guard_tokens=256, sealed_tokens=512)
PARAMS = SealedParams(resamples=500)


def test_changes_are_paired_by_chunk_and_signed() -> None:
    host = np.array([3.0, 1.0, 2.0, 5.0])
    losses = {"host": host, "better": host - np.array([0.1, 0.2, 0.3, 0.2]), "same": host.copy()}
    found = compared(losses, PARAMS, sign=-1, seed=1)
    better = found["better"]
    assert better["value"] == pytest.approx(0.2)
    assert 0.1 <= better["low"] < 0.2 < better["high"] <= 0.3
    assert better["z"] == pytest.approx(0.2 / (np.std([0.1, 0.2, 0.3, 0.2], ddof=1) / 2))
    assert found["same"] == {"value": 0, "low": 0, "high": 0, "z": 0}
    assert compared(losses, PARAMS, sign=1, seed=1)["better"]["value"] == pytest.approx(-0.2)
    assert against(losses, PARAMS, "better", ["same"], seed=1)["same"]["value"] == pytest.approx(0.2)


def test_anatomy_compares_late_layers_with_early_ones() -> None:
    found = anatomy([4, 9, 14], [0.2, 1.0, 0.8], [1, 2, 3])
    assert found["late_to_early"] == pytest.approx(4)
    assert found["layers"][1] == {"layer": 9, "alpha": 1.0, "norm": 2.0}
    assert anatomy([4, 9], [0.0, 1.0], [1, 1])["late_to_early"] is None


def test_a_continuation_is_the_most_likely_tokens_one_by_one(host: Host, shadow: Shadow) -> None:
    ids_T = torch.tensor(host.encode("a cool cellar"))
    before = continuation(host, ids_T, 12)
    with attached(host, shadow):
        after = continuation(host, ids_T, 12)
        made = ids_T
        for _ in range(12):
            made = torch.cat([made, host.model(made[None]).logits[0, -1:].argmax(-1)])
    assert after == host.tokenizer.decode(made[len(ids_T) :].tolist(), skip_special_tokens=True)
    assert after != before


@pytest.fixture
def setting(tmp_path: Path) -> tuple[ShadowParams, AnnealParams]:
    path, other = tmp_path / "casks.txt", tmp_path / "other.txt"
    path.write_text("".join(f"the {n}th cask is cool and dark; keep it shut.\n" for n in range(300)))
    other.write_text("".join(f"{n * n} IS A SQUARE, {n} IS NOT?\n" for n in range(300)))
    shadow = ShadowParams(
        name="casks",
        domain=TextSource(path=path),
        held=HELD,
        layers=(1, 3, 5),
        chunk_tokens=32,
        chunks=20,
        step_size=0.5,
    )
    anneal = AnnealParams(
        retention=(TextSource(path=other),),
        held=HELD,
        passages=3,
        passage_tokens=32,
        scored=16,
        evaluations=20,
        penalty=0.2,
        sealed=SealedParams(chunk_tokens=64, baselines=("line",), cards=2, card_tokens=4, resamples=500),
    )
    return shadow, anneal


def test_an_interrupted_evaluation_goes_on_to_the_same_bytes(
    store: Store,
    host: Host,
    setting: tuple[ShadowParams, AnnealParams],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    params, anneal = setting
    write_domain(store, host, params)
    consolidate(store, host, params, anneal)
    shutil.copytree(tmp_path / "store", tmp_path / "other")
    other, work, seen = Store.open(f"file:{tmp_path / 'other'}"), tmp_path / "work", list[int]()
    whole = evaluate_shadow(other, host, params, anneal)

    options: dict[str, Any] = {"work_dir": work, "checkpoint_s": 0}
    search, chunks = 20, 16
    for last in (10, search, search + 4, search + 2 * chunks):
        with pytest.raises(Killed):
            evaluate_shadow(store, host, params, anneal, progress=stop_at(last), **options)
    monkeypatch.delattr("tasks.anneal.step.objective_of")  # nothing of the search is left to evaluate
    resumed = evaluate_shadow(store, host, params, anneal, progress=stop_at(-1, seen), **options)

    assert [done for done in seen if done > search][:6] == [28, 36, 44, 52, 56, 60]
    assert seen[-1] == search + 4 * chunks
    assert list(work.iterdir()) == []
    assert other.read(whole.summary_ref) == store.read(resumed.summary_ref)
    assert other.read(whole.samples_ref) == store.read(resumed.samples_ref)


def test_the_summary_is_that_of_its_samples(
    store: Store, host: Host, setting: tuple[ShadowParams, AnnealParams]
) -> None:
    params, anneal = setting
    write_domain(store, host, params)
    consolidate(store, host, params, anneal)
    made = evaluate_shadow(store, host, params, anneal)
    assert evaluate_shadow(store, host, params, anneal).reused
    summary = made.summary
    samples = load_records(store.read(made.samples_ref), ChunkLoss, what="chunk losses")
    assert len(samples) == 4 * (summary["chunks"]["domain"] + summary["chunks"]["retention"])

    def mean(text: str, condition: str) -> float:
        found = [one.loss for one in samples if (one.text, one.condition) == (text, condition)]
        return float(np.mean(found))

    for condition in ("naive", "consolidated", "line"):
        gain = mean("domain", "host") - mean("domain", condition)
        assert summary["gain"][condition]["value"] == pytest.approx(gain, abs=1e-9)
        drift = mean("retention", condition) - mean("retention", "host")
        assert summary["drift"][condition]["value"] == pytest.approx(drift, abs=1e-9)
    assert summary["gain"]["consolidated"]["low"] > 0, "it learned the text"
    _, shadow = open_shadow(store, "casks", host)
    domain_NT, _ = sealed_parts(read_texts(store, host, params, anneal), 64)
    with attached(host, shadow):
        alone = chunk_losses(host, domain_NT)
    assert alone.mean() == pytest.approx(mean("domain", "consolidated"), abs=1e-6)
    assert len(summary["cards"]) == 2
    assert summary["anatomy"]["layers"][0]["alpha"] == shadow.alphas[0]
    other = params.model_copy(update={"domain": anneal.retention[0]})
    with pytest.raises(StaleInputs, match="made of another text"):
        evaluate_shadow(store, host, other, anneal)
    longer = anneal.sealed.model_copy(update={"chunk_tokens": 1025})
    with pytest.raises(UnfitHost, match="takes 1,025 tokens"):
        evaluate_shadow(store, host, params, anneal.model_copy(update={"sealed": longer}))
