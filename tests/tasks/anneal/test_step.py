"""A written shadow is consolidated once, resumes, falls back to nothing, and is bound to its text."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from store import Store
from tasks.anneal import (
    AnnealParams,
    before_and_after,
    check_texts,
    consolidate,
    evaluate_shadow,
    read_texts,
)
from tasks.anneal.params import SealedParams
from tasks.anneal.texts import check_lengths
from tasks.errors import BadCorpus, StaleInputs, TooLittleText, UnfitHost
from tasks.hosts import Host
from tasks.shadows import HeldParams, ShadowParams, TextSource, find_written, open_shadow, write_domain
from tests.host_parts import closed

HELD = HeldParams(selection_tokens=256, guard_tokens=512, sealed_tokens=512)


class Killed(Exception):
    """Stands for Ctrl-C."""


@pytest.fixture
def shadow_params(tmp_path: Path) -> ShadowParams:
    path = tmp_path / "casks.txt"
    path.write_text("".join(f"the {n}th cask is cool and dark; keep it shut.\n" for n in range(300)))
    return ShadowParams(
        name="casks",
        domain=TextSource(path=path),
        held=HELD,
        layers=(1, 3, 5),
        chunk_tokens=32,
        chunks=20,
        step_size=0.5,
    )


@pytest.fixture
def anneal(tmp_path: Path) -> AnnealParams:
    path = tmp_path / "other.txt"
    path.write_text("".join(f"{n * n} IS A SQUARE, {n} IS NOT?\n" for n in range(300)))
    return AnnealParams(
        retention=(TextSource(path=path),),
        held=HELD,
        passages=4,
        passage_tokens=32,
        scored=16,
        evaluations=40,
        penalty=0.5,
    )


def test_a_domain_is_consolidated_once_and_its_host_gains(
    store: Store, host: Host, shadow_params: ShadowParams, anneal: AnnealParams
) -> None:
    written = write_domain(store, host, shadow_params)
    ref = consolidate(store, host, shadow_params, anneal)
    assert ref.name == "shadow/casks"
    assert consolidate(store, host, shadow_params, anneal) == ref
    row = store.catalog().get(ref.version)
    assert row is not None
    assert {host.ref.version, written.version} <= set(row.requires)
    facts = row.facts
    assert facts["evaluations"] == 40
    assert facts["course"][-1] == [40, facts["selection"]["score"]]
    assert facts["selection"]["score"] >= facts["selection_naive"]["score"]
    assert facts["guard"]["gain"] > 0
    assert not facts["fell_back"]
    _, shadow = open_shadow(store, "casks", host)
    _, full = open_shadow(store, "casks.written", host)
    assert 0 < max(shadow.alphas) <= 1.2
    assert all(np.array_equal(a, b) for a, b in zip(shadow.deltas, full.deltas, strict=True))
    assert shadow.seeds == {"documents": 0, "search": 0}


def test_what_is_published_is_found_without_opening_the_host(
    store: Store, host: Host, shadow_params: ShadowParams, anneal: AnnealParams
) -> None:
    written = write_domain(store, host, shadow_params)
    kept = consolidate(store, host, shadow_params, anneal, written=written)
    made = evaluate_shadow(store, host, shadow_params, anneal)
    unopened, tip = closed(host), store.tip()
    assert find_written(store, unopened, shadow_params) == written
    assert write_domain(store, unopened, shadow_params) == written
    assert consolidate(store, unopened, shadow_params, anneal, written=written, sealed=True) == kept
    again = evaluate_shadow(store, unopened, shadow_params, anneal)
    assert (again.summary_ref, again.reused, store.tip()) == (made.summary_ref, True, tip)
    other = shadow_params.model_copy(update={"chunks": 3})
    assert find_written(store, unopened, other) is None


def test_text_too_short_for_the_report_is_said_before_the_search(
    store: Store, host: Host, shadow_params: ShadowParams, anneal: AnnealParams
) -> None:
    write_domain(store, host, shadow_params)
    long = anneal.model_copy(update={"sealed": SealedParams(chunk_tokens=600)})

    def searched(*_: object) -> None:
        pytest.fail("the search began")

    with pytest.raises(TooLittleText, match="600"):
        consolidate(store, host, shadow_params, long, sealed=True, progress=searched)


def test_cards_longer_than_the_host_reads_are_refused_where_cards_are_asked_for(
    host: Host, anneal: AnnealParams
) -> None:
    long = SealedParams(chunk_tokens=64, card_tokens=1_000)
    with pytest.raises(UnfitHost, match=r"a card takes 1,032 tokens, more than the 1,024"):
        check_lengths(host, anneal.model_copy(update={"sealed": long}), sealed=True)
    none = long.model_copy(update={"cards": 0})
    check_lengths(host, anneal.model_copy(update={"sealed": none}), sealed=True)


def test_an_interrupted_search_publishes_the_same_bytes(
    store: Store, host: Host, shadow_params: ShadowParams, anneal: AnnealParams, tmp_path: Path
) -> None:
    write_domain(store, host, shadow_params)
    work, seen = tmp_path / "work", []

    def watch(done: int, total: int, **figures: float) -> None:
        seen.append(done)
        if done > 20 and len(seen) < 10:
            raise Killed

    options: dict[str, Any] = {"work_dir": work, "checkpoint_s": 0, "progress": watch}
    with pytest.raises(Killed):
        consolidate(store, host, shadow_params, anneal, **options)
    seen += [0] * 10
    resumed = consolidate(store, host, shadow_params, anneal, **options)
    assert list(work.iterdir()) == []
    _, shadow = open_shadow(store, resumed, host)
    renamed = shadow_params.model_copy(update={"name": "again"})
    write_domain(store, host, renamed)
    _, whole = open_shadow(store, consolidate(store, host, renamed, anneal), host)
    assert whole.to_bytes() == shadow.to_bytes()


def test_what_is_not_worth_its_harm_is_not_kept(
    store: Store, host: Host, shadow_params: ShadowParams, anneal: AnnealParams
) -> None:
    write_domain(store, host, shadow_params)
    strict = anneal.model_copy(update={"penalty": 1_000.0})
    ref = consolidate(store, host, shadow_params, strict)
    row = store.catalog().get(ref.version)
    assert row is not None
    assert row.facts["fell_back"]
    _, shadow = open_shadow(store, ref, host)
    assert shadow.is_zero


def test_a_shadow_of_another_text_or_no_retention_text_is_refused(
    store: Store, host: Host, shadow_params: ShadowParams, anneal: AnnealParams
) -> None:
    write_domain(store, host, shadow_params)
    with pytest.raises(BadCorpus, match="must not get worse"):
        consolidate(store, host, shadow_params, AnnealParams())
    other = shadow_params.model_copy(update={"domain": anneal.retention[0]})
    with pytest.raises(StaleInputs, match="was written from another text"):
        consolidate(store, host, other, anneal)


def test_a_text_under_two_names_is_written_and_searched_once_for_each(
    store: Store, host: Host, shadow_params: ShadowParams, anneal: AnnealParams
) -> None:
    short = anneal.model_copy(update={"evaluations": 4})
    again = shadow_params.model_copy(update={"name": "again"})
    written = [write_domain(store, host, params) for params in (shadow_params, again)]
    kept = [
        consolidate(store, host, params, short, written=ref)
        for params, ref in zip((shadow_params, again), written, strict=True)
    ]
    tip = store.tip().sequence

    assert [write_domain(store, host, params) for params in (shadow_params, again)] == written
    assert consolidate(store, host, again, short, written=written[1]) == kept[1]
    assert store.tip().sequence == tip


def test_a_text_that_was_learned_before_another_is_found_again(
    store: Store, host: Host, shadow_params: ShadowParams, anneal: AnnealParams
) -> None:
    written = write_domain(store, host, shadow_params)
    kept = consolidate(store, host, shadow_params, anneal, written=written)
    other = shadow_params.model_copy(update={"domain": anneal.retention[0]})
    assert write_domain(store, host, other) != written

    assert write_domain(store, host, shadow_params) == written
    assert consolidate(store, host, shadow_params, anneal, written=written) == kept
    evaluated = evaluate_shadow(store, host, shadow_params, anneal, kept=kept, written=written)
    assert json.loads(store.read(evaluated.summary_ref))["shadow"] == str(kept)


@pytest.mark.parametrize(
    ("shadow_change", "anneal_change", "sealed", "sentence"),
    [
        ({}, {"passage_tokens": 300}, False, "no passage of 300"),
        ({}, {"clamp": 0}, False, "clamp one of several"),
        ({"layers": (1,)}, {"clamp": 1}, False, "clamp one of several"),
        ({"layers": (1, 9)}, {}, False, "asks for number 9"),
        ({"held": HeldParams(guard_tokens=300_000)}, {}, False, "tokens for its guard part"),
        ({}, {"held": HeldParams(guard_tokens=300_000)}, False, "tokens for its guard part"),
        (
            {},
            {"sealed": SealedParams(chunk_tokens=600)},
            True,
            r"no passage of 600; .*anneal\.sealed\.chunk_tokens",
        ),
        ({"chunk_tokens": 1025}, {}, False, r"shadow\.chunk_tokens takes 1,025 .* the 1,024 that host/tiny"),
        ({}, {"passage_tokens": 1025}, False, r"anneal\.passage_tokens takes 1,025 tokens"),
        ({}, {"sealed": SealedParams(chunk_tokens=1025)}, True, r"anneal\.sealed\.chunk_tokens takes 1,025"),
        (
            {},
            {"sealed": SealedParams(card_tokens=1000)},
            True,
            r"a card takes 1,096 .* lower anneal\.sealed\.card_tokens",
        ),
    ],
)
def test_what_a_search_or_a_report_lacks_is_found_without_any_shadow(
    store: Store,
    host: Host,
    shadow_params: ShadowParams,
    anneal: AnnealParams,
    shadow_change: dict[str, Any],
    anneal_change: dict[str, Any],
    sealed: bool,
    sentence: str,
) -> None:
    check_texts(store, host, [shadow_params], anneal, sealed=True)
    shadow, changed = shadow_params.model_copy(update=shadow_change), anneal.model_copy(update=anneal_change)
    with pytest.raises((TooLittleText, UnfitHost), match=sentence):
        check_texts(store, host, [shadow_params, shadow], changed, sealed=sealed)


def test_what_a_host_does_not_read_at_once_is_neither_written_nor_continued(
    store: Store, host: Host, shadow_params: ShadowParams
) -> None:
    long = shadow_params.model_copy(update={"chunk_tokens": 1025})
    with pytest.raises(UnfitHost, match="takes 1,025 tokens"):
        write_domain(store, host, long)
    with pytest.raises(UnfitHost, match=r"what continues it takes 1,033 .* or lower --tokens"):
        before_and_after(store, host, [], "nine here", tokens=1024)


def test_no_passage_of_one_purpose_is_one_of_another(
    store: Store, host: Host, shadow_params: ShadowParams, anneal: AnnealParams
) -> None:
    texts = read_texts(store, host, shadow_params, anneal)
    [retention] = texts.retention
    for text in (texts.domain, retention):
        joined = [part.tolist() for part in (text.selection_T, text.guard_T, text.sealed_T)]
        assert [len(part) for part in joined] == [256, 512, 512]
        assert len({tuple(part[:100]) for part in joined}) == 3
    assert len(retention.train_T) == 0
