"""Strings are cut in the host's tokens, shown text stands before the cue, and others' text is others'."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tasks.composition import (
    CompositionParams,
    CompositionSample,
    Passage,
    Retrieved,
    continue_passages,
    draw_passages,
    holds,
    others,
    summarise,
)
from tasks.errors import TooLittleText
from tasks.hosts import Host
from tests.hosted import host, host_folder, store  # noqa: F401

PARAMS = CompositionParams(passages=6, cue_tokens=8, target_tokens=4, resamples=100)
DOCUMENTS = {f"memory/{n}": f"cask {n} is cool, dark and kept shut; count to {n * n}" for n in range(10)}


def encode(text: str) -> list[int]:
    return list(text.encode())


def decode(ids: object) -> str:
    return bytes(ids).decode(errors="replace")  # type: ignore[call-overload]


def test_strings_stand_in_their_documents_and_half_were_learned() -> None:
    def learned(text: str) -> str:
        return "yes" if text.startswith(("cask 1", "cask 2", "cask 3", "cask 4")) else "no"

    found = draw_passages(DOCUMENTS, learned, encode, decode, PARAMS)
    assert found == draw_passages(DOCUMENTS, learned, encode, decode, PARAMS)
    assert [one.learned for one in found].count("yes") == 3
    assert len({one.element for one in found}) == 6
    for one in found:
        assert one.cue + one.target in DOCUMENTS[one.element]
        assert (len(one.cue_T), len(one.target_T)) == (8, 4)
    other = draw_passages(DOCUMENTS, learned, encode, decode, PARAMS.model_copy(update={"seed": 1}))
    assert other != found


def test_few_learned_documents_leave_their_places_to_others_and_short_ones_are_refused() -> None:
    found = draw_passages(*(DOCUMENTS, lambda text: "yes" if "81" in text else "no", encode, decode, PARAMS))
    assert [one.learned for one in found].count("yes") == 1
    assert len(found) == 6
    with pytest.raises(TooLittleText, match=r"composition\.cue_tokens"):
        draw_passages({"memory/a": "short"}, lambda text: "no", encode, decode, PARAMS)


def test_a_place_inside_a_character_is_not_taken() -> None:
    documents = {f"memory/{n}": "é" * 40 + str(n) for n in range(4)}
    for one in draw_passages(documents, lambda text: "unknown", encode, decode, PARAMS):
        assert "\ufffd" not in one.cue + one.target


def test_shown_text_stands_before_the_cue(host: Host) -> None:  # noqa: F811
    cue, target = "the third cask", " is cool"
    passage = Passage("memory/a", "no", tuple(host.encode(cue)), tuple(host.encode(target)), cue, target)
    shown = Retrieved("memory/b", "exact", "the third cask is\n cool and dark")
    [sample] = continue_passages(host, [passage], [shown], "text")
    ids_T = torch.tensor(host.encode(f"{shown.text}\n\n{cue}{target}"))
    with torch.no_grad():
        logits_TV = host.model(ids_T[None]).logits[0, -9:-1].float()
    assert sample.nats == pytest.approx(float(F.cross_entropy(logits_TV, ids_T[-8:])), abs=1e-5)
    assert sample.share == pytest.approx(float((logits_TV.argmax(-1) == ids_T[-8:]).double().mean()))
    assert (sample.found, sample.holds, sample.exact) == ("memory/b", True, sample.share == 1)
    [bare] = continue_passages(host, [passage], [None], "host")
    assert (bare.found, bare.holds) == ("", False)
    assert bare.nats != sample.nats


def test_the_text_of_another_passage_is_of_another_element() -> None:
    found = [Retrieved(name, "exact", name) for name in ("a", "a", "b", "c")]
    assert [one.element for one in others(found)] == ["b", "b", "c", "a"]
    assert others(found[:2]) == found[:2]


def test_white_space_does_not_keep_a_string_from_being_held() -> None:
    assert holds("is\n   cool and", " is cool")
    assert not holds("is cold", "is cool")


def test_figures_follow_from_the_samples() -> None:
    def sample(place: int, condition: str, nats: float, learned: str) -> CompositionSample:
        found = "" if condition in ("host", "shadow") else f"memory/{place % 2}"
        return CompositionSample(
            *(
                place,
                f"memory/{place}",
                learned,
                condition,
                found,
                bool(found),
                "x",
                nats,
                1 / nats,
                nats == 1,
            )
        )

    nats = {"host": 4.0, "shadow": 3.0, "text": 1.0, "shadow + text": 1.0, "other text": 5.0}
    samples = [
        sample(place, condition, value + place % 2 * (value > 1), "yes" if place < 2 else "no")
        for condition, value in nats.items()
        for place in range(4)
    ]
    found = summarise(samples, PARAMS)
    assert found["learned"] == {"no": 2, "yes": 2}
    assert found["found"] == {"own": 0.5, "holds": 1.0}
    assert list(found["composed"]) == ["all", "learned: no", "learned: yes"]
    every = found["composed"]["all"]
    assert every["figures"]["text"]["exact"]["value"] == 1
    assert every["figures"]["host"]["nats"]["value"] == pytest.approx(4.5)
    by = {(one["of"], one["less"]): one["nats"] for one in every["differences"]}
    assert by["shadow", "host"] == {"value": -1, "low": -1, "high": -1}
    assert by["text", "host"]["low"] < by["text", "host"]["value"] == pytest.approx(-3.5)
    assert np.isfinite(by["other text", "host"]["high"])
