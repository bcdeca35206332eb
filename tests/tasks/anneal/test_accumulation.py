"""Domains learned one after another: each stands on those before it; forgetting is in the losses."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from store import Store
from tasks.anneal import AnnealParams, StageLoss, consolidate, evaluate_stages, forgetting, stages
from tasks.anneal.params import SealedParams
from tasks.errors import BadStack, StaleInputs
from tasks.hosts import Host
from tasks.shadows import (
    HeldParams,
    ShadowParams,
    TextSource,
    foundation,
    open_shadow,
    stack_refs,
    write_domain,
)
from tasks.tables import load_records
from tests.tasks.killing import Killed, stop_at


def test_forgetting_is_read_off_the_losses() -> None:
    losses = {"a": [3.0, 2.0, 2.4], "b": [4.0, 4.5, 3.5], "retention": [1.0, 1.1, 1.2]}
    samples = [
        StageLoss(stage, text, chunk, value + shift)
        for text, values in losses.items()
        for stage, value in enumerate(values)
        for chunk, shift in enumerate((-0.5, 0.5))
    ]
    found = forgetting(samples, ["a", "b"])
    assert found["cumulative"]["a"] == pytest.approx(
        {"gain_own_stage": 1.0, "gain_end": 0.6, "forgotten": 0.4, "before_own_stage": 0.0}
    )
    assert found["cumulative"]["b"] == pytest.approx(
        {"gain_own_stage": 1.0, "gain_end": 0.5, "forgotten": 0.0, "before_own_stage": -0.5}
    )
    assert found["drift_by_stage"] == pytest.approx([0, 0.1, 0.2])


def test_domains_are_learned_on_top_of_one_another(store: Store, host: Host, tmp_path: Path) -> None:
    texts = {
        "casks": "the {n}th cask is cool and dark; keep it shut.\n",
        "squares": "{n} TIMES {n} IS A SQUARE?\n",
        "other": "[{n}] -> ({n}, {n})\n",
    }
    sources = {}
    for name, line in texts.items():
        path = tmp_path / f"{name}.txt"
        path.write_text("".join(line.format(n=n) for n in range(400)))
        sources[name] = TextSource(path=path)
    held = HeldParams(selection_tokens=128, guard_tokens=256, sealed_tokens=256)
    shadow = ShadowParams(name="all", held=held, layers=(1, 5), chunk_tokens=32, chunks=10, step_size=0.5)
    anneal = AnnealParams(
        retention=(sources.pop("other"),),
        domains=sources,
        held=held,
        passages=2,
        passage_tokens=32,
        scored=16,
        evaluations=8,
        penalty=0,
        sealed=SealedParams(chunk_tokens=64),
    )
    refs = []
    for stage in stages(shadow, anneal):
        write_domain(store, host, stage)
        refs.append(consolidate(store, host, stage, anneal))
    assert [ref.name for ref in refs] == ["shadow/all.casks", "shadow/all.squares"]
    assert foundation(store, refs[1]) == (refs[0],)
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    options: dict[str, Any] = {"work_dir": tmp_path / "work", "checkpoint_s": 0}
    for last in (4, 8, 28):
        with pytest.raises(Killed):
            evaluate_stages(store, host, shadow, anneal, progress=stop_at(last), **options)
    seen: list[int] = []
    made = evaluate_stages(store, host, shadow, anneal, progress=stop_at(-1, seen), **options)
    assert seen == [4, 8, 12, 16, 20, 24, 28, 32, 36]
    assert list((tmp_path / "work").iterdir()) == []
    copy = Store.open(f"file:{tmp_path / 'copy'}")
    whole = evaluate_stages(copy, host, shadow, anneal)
    assert copy.read(whole.summary_ref) == store.read(made.summary_ref)
    assert copy.read(whole.samples_ref) == store.read(made.samples_ref)
    assert evaluate_stages(store, host, shadow, anneal).reused
    samples = load_records(store.read(made.samples_ref), StageLoss, what="stage losses")
    assert len(samples) == 3 * 3 * 4
    assert made.summary["cumulative"]["casks"]["gain_own_stage"] > 0
    own = [one.loss for one in samples if (one.text, one.learned) == ("casks", 1)]
    assert made.summary["losses"]["casks"][1] == pytest.approx(np.mean(own))
    again = stages(shadow, anneal)[0].model_copy(update={"step_size": 0.4})
    write_domain(store, host, again)
    replaced = consolidate(store, host, again, anneal)
    assert open_shadow(store, "all.casks", host)[0] == replaced != refs[0]
    with pytest.raises(StaleInputs, match="stands on other shadows"):
        evaluate_stages(store, host, shadow, anneal)
    assert evaluate_stages(store, host, shadow, anneal, kept=refs).summary_ref == made.summary_ref
    assert stack_refs(store, [str(refs[0])]) == (refs[0],)
    with pytest.raises(BadStack, match="are two versions of one shadow"):
        stack_refs(store, [str(refs[0]), "all.casks"])
