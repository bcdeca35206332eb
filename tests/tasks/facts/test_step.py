"""Lessons are written once, resume, change what a host answers, and are judged by what it says itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from store import Ref, Store
from tasks.anneal import AnnealParams, ChunkLoss
from tasks.anneal.params import SealedParams
from tasks.errors import BadCorpus, StaleInputs, TooLittleText, UnfitHost
from tasks.facts import (
    FactSample,
    FactsParams,
    answer_nats,
    check_lessons,
    evaluate_facts,
    made_up_facts,
    teach,
)
from tasks.hosts import Host
from tasks.shadows import HeldParams, ShadowParams, open_shadow
from tasks.tables import load_records
from tests.host_parts import closed
from tests.tasks.killing import Killed, stop_at

PARAMS = FactsParams(
    name="few", relations=1, facts_each=3, untaught=2, passes=2, said_tokens=8, resamples=100
)
SHADOW = ShadowParams(layers=(1, 3, 5), chunk_tokens=128, step_size=0.5)


def test_an_answer_is_scored_as_a_whole_alone_or_among_others(host: Host) -> None:
    prompt, answers = "The founder is", ["Ann", "Bartholomew", "Cy"]
    together = answer_nats(host, prompt, answers)
    for place, answer in enumerate(answers):
        ids_T = torch.tensor(host.encode(f"{prompt} {answer}"))
        start = len(host.encode(prompt))
        with torch.no_grad():
            logits_TV = host.model(ids_T[None]).logits[0]
        alone = float(F.cross_entropy(logits_TV[start - 1 : -1].float(), ids_T[start:]))
        assert together[place] == pytest.approx(alone, abs=1e-5)


def test_lessons_are_taught_and_facts_asked_for_once(store: Store, host: Host, anneal: AnnealParams) -> None:
    refs = [teach(store, host, SHADOW, PARAMS, lesson) for lesson in PARAMS.lessons]
    assert [ref.name for ref in refs] == ["shadow/few.varied.written", "shadow/few.repeated.written"]
    assert [teach(store, host, SHADOW, PARAMS, lesson) for lesson in PARAMS.lessons] == refs
    other = PARAMS.model_copy(update={"name": "other"})
    under = teach(store, host, SHADOW, other, "varied")
    tip = store.tip().sequence
    assert under.name == "shadow/other.varied.written"
    assert teach(store, host, SHADOW, other, "varied") == under
    assert store.tip().sequence == tip
    made = evaluate_facts(store, host, SHADOW, PARAMS, anneal)
    assert made.summary_ref.name == "evaluation/few.facts"
    assert evaluate_facts(store, closed(host), SHADOW, PARAMS, anneal).reused
    samples = load_records(store.read(made.samples_ref), FactSample, what="fact samples")
    assert len(samples) == 3 * 3 * 5
    summary = made.summary
    lessons = summary["lessons"]
    assert lessons["varied"]["tokens"] == lessons["repeated"]["tokens"]
    assert lessons["varied"]["chunks"] == lessons["repeated"]["chunks"]
    new = summary["new"]["figures"]
    asked = [one for one in samples if one.new and one.condition == "varied"]
    assert new["varied"]["nats"]["value"] == pytest.approx(np.mean([one.answer_nats for one in asked]))
    assert new["varied"]["nats"]["value"] < new["host"]["nats"]["value"]
    own = summary["repeated_framing"]["figures"]
    assert own["repeated"]["nats"]["value"] < own["host"]["nats"]["value"]
    assert [(one["of"], one["less"]) for one in summary["new"]["differences"]] == [
        ("varied", "host"),
        ("repeated", "host"),
        ("repeated", "varied"),
    ]
    assert set(summary["drift"]) == {"varied", "repeated"}
    row = store.catalog().get(made.summary_ref.version)
    assert row is not None
    assert {refs[0].version, refs[1].version, host.ref.version} <= set(row.requires)


def test_an_interrupted_lesson_and_evaluation_go_on_to_the_same_bytes(
    store: Store, host: Host, anneal: AnnealParams, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    seen: list[int] = []
    with pytest.raises(Killed):
        teach(*(store, host, SHADOW, PARAMS, "varied"), progress=stop_at(3), work_dir=work, checkpoint_s=0)
    resumed = teach(
        *(store, host, SHADOW, PARAMS, "varied"), progress=stop_at(-1, seen), work_dir=work, checkpoint_s=0
    )
    assert seen[0] > 1
    teach(store, host, SHADOW, PARAMS, "repeated")
    other = PARAMS.model_copy(update={"name": "whole"})
    whole = teach(store, host, SHADOW, other, "varied")
    assert open_shadow(store, resumed, host)[1].to_bytes() == open_shadow(store, whole, host)[1].to_bytes()

    options: dict[str, Any] = {"work_dir": work, "checkpoint_s": 0}
    for last in (2, 5):
        with pytest.raises(Killed):
            evaluate_facts(store, host, SHADOW, PARAMS, anneal, progress=stop_at(last), **options)
    seen.clear()
    made = evaluate_facts(store, host, SHADOW, PARAMS, anneal, progress=stop_at(-1, seen), **options)
    assert seen == [3, 5, 6, 7, 8, 9]
    assert list(work.iterdir()) == []
    teach(store, host, SHADOW, other, "repeated")
    again = evaluate_facts(store, host, SHADOW, other, anneal)
    assert store.read(again.samples_ref) == store.read(made.samples_ref)


def test_facts_of_another_seed_and_a_missing_retention_text_are_refused(
    store: Store, host: Host, anneal: AnnealParams
) -> None:
    for lesson in PARAMS.lessons:
        teach(store, host, SHADOW, PARAMS, lesson)
    with pytest.raises(StaleInputs, match="was taught other facts"):
        evaluate_facts(store, host, SHADOW, PARAMS.model_copy(update={"seed": 5}), anneal)
    with pytest.raises(BadCorpus, match="must not get worse"):
        evaluate_facts(store, host, SHADOW, PARAMS, AnnealParams())
    longer = PARAMS.model_copy(update={"said_tokens": 1_020})
    with pytest.raises(UnfitHost, match="asking for a fact takes"):
        evaluate_facts(store, host, SHADOW, longer, anneal)


@pytest.mark.parametrize(
    ("shadow", "params", "changes", "sentence"),
    [
        ({"chunk_tokens": 1_000}, {"lessons": ("varied", "once")}, {}, "no chunk of 1000 tokens"),
        ({"chunk_tokens": 1_025}, {}, {}, r"shadow\.chunk_tokens takes 1,025 tokens"),
        ({}, {"said_tokens": 1_020}, {}, r"asking for a fact takes 1,0.*lower facts\.said_tokens"),
        ({}, {}, {"sealed": SealedParams(chunk_tokens=1_025)}, "chunk_tokens takes 1,025 tokens"),
        ({}, {"untaught": 50, "facts_each": 200, "relations": 2}, {}, "are too many for 160 pairs"),
        ({}, {}, {"sealed": SealedParams(chunk_tokens=512)}, "no passage of 512"),
        ({}, {}, {"held": HeldParams(sealed_tokens=100_000)}, "tokens for its sealed part"),
    ],
)
def test_what_lessons_and_their_questions_lack_is_found_before_any_is_taught(
    store: Store,
    host: Host,
    anneal: AnnealParams,
    shadow: dict[str, Any],
    params: dict[str, Any],
    changes: dict[str, Any],
    sentence: str,
) -> None:
    check_lessons(store, host, SHADOW, PARAMS, anneal)
    with pytest.raises((TooLittleText, UnfitHost), match=sentence):
        check_lessons(
            *(store, host, SHADOW.model_copy(update=shadow), PARAMS.model_copy(update=params)),
            anneal.model_copy(update=changes),
        )


def test_lessons_that_are_not_the_newest_of_their_names_are_asked_for(
    store: Store, host: Host, anneal: AnnealParams
) -> None:
    once = PARAMS.model_copy(update={"lessons": ("once",)})
    first = teach(store, host, SHADOW, once, "once")
    made = evaluate_facts(store, host, SHADOW, once, anneal, taught=[first])
    slower = SHADOW.model_copy(update={"step_size": SHADOW.step_size / 2})
    second = teach(store, host, slower, once, "once")

    assert teach(store, host, SHADOW, once, "once") == first != second
    again = evaluate_facts(store, host, SHADOW, once, anneal, taught=[first])
    assert again.summary_ref == made.summary_ref
    other = evaluate_facts(store, host, slower, once, anneal, taught=[second])
    assert other.summary["lessons"]["once"]["shadow"] == str(second)


def test_a_chunk_of_retention_text_has_a_loss_under_every_condition(
    store: Store, host: Host, anneal: AnnealParams
) -> None:
    once = PARAMS.model_copy(update={"lessons": ("once",)})
    small = SHADOW.model_copy(update={"chunk_tokens": 64})
    teach(store, host, small, once, "once")
    made = evaluate_facts(store, host, small, once, anneal)
    row = store.catalog().get(made.summary_ref.version)
    assert row is not None
    losses = load_records(store.read(Ref.parse(row.provenance["retention"])), ChunkLoss, what="losses")
    by = {name: [one.loss for one in losses if one.condition == name] for name in ("host", "once")}
    assert len(by["host"]) == len(by["once"]) == 4
    change = np.mean(by["once"]) - np.mean(by["host"])
    assert made.summary["drift"]["once"]["value"] == pytest.approx(change)
    assert made.summary["lessons"]["once"]["mentions"] == 1
    assert len(made_up_facts(once)) == len(made.summary["facts"]) == 3
