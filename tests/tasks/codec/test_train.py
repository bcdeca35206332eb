"""Training: it learns, repeats itself, resumes bit for bit, and ignores padding."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.checkpoint import Checkpoints
from tasks.codec import (
    Codec,
    CodecArchitecture,
    CodecParams,
    Trainer,
    blocks,
    cross_entropy,
    group_documents,
    train,
    validate,
)
from tasks.codec.train import GroupOrder, learning_rate
from tasks.errors import TooLittleText
from tests.tasks.codec.conftest import ARCHITECTURE, PARAMS, VOCABULARY

SHORT = PARAMS.model_copy(update={"steps": 9, "local_steps": 2})


def test_a_second_of_training_reads_unseen_documents_from_bfloat16(
    codec: Codec, unseen: list[np.ndarray]
) -> None:
    encoded, adapted = validate(codec, group_documents(unseen, ARCHITECTURE), PARAMS)

    assert encoded.tokens == sum(len(ids) for ids in unseen)
    assert encoded.token_recall >= 0.98
    assert adapted.token_recall >= encoded.token_recall
    assert adapted.loss < encoded.loss


def test_equal_inputs_give_equal_bytes_and_another_seed_gives_others(training: list[np.ndarray]) -> None:
    first = train(SHORT, training, VOCABULARY).to_bytes()

    assert train(SHORT, training, VOCABULARY).to_bytes() == first
    assert train(SHORT.model_copy(update={"seed": 3}), training, VOCABULARY).to_bytes() != first


def test_an_interrupted_training_ends_with_the_same_bytes(training: list[np.ndarray], tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "f" * 64, seconds=0)
    resumed: list[int] = []

    def interrupt(done: int, total: int, **figures: float) -> None:
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SHORT, training, VOCABULARY, checkpoints=checkpoints, progress=interrupt)
    codec = train(
        SHORT,
        training,
        VOCABULARY,
        checkpoints=checkpoints,
        progress=lambda done, total, **figures: resumed.append(done),
    )

    assert resumed == [6, 7, 8, 9]
    assert codec.to_bytes() == train(SHORT, training, VOCABULARY).to_bytes()


def test_what_stands_in_the_padding_has_no_loss(training: list[np.ndarray]) -> None:
    # Slots are still independent at the first update, so padding could only come in through the loss.
    tokens_NT, mask_NT = blocks(np.arange(2, 15, dtype=np.uint16), 8)
    changed_NT = tokens_NT.masked_fill(~mask_NT, 77)

    losses = [Trainer(SHORT, VOCABULARY).step(tokens, mask_NT) for tokens in (tokens_NT, changed_NT)]

    assert losses[0] == losses[1]


def test_the_candidate_softmax_is_the_full_one_when_everything_is_a_candidate() -> None:
    generator = torch.Generator().manual_seed(0)
    head_VS = torch.randn(50, 8, generator=generator)
    slots_MS = torch.randn(20, 8, generator=generator)
    targets_M = torch.randint(50, (20,), generator=generator)

    full = cross_entropy(head_VS, slots_MS, targets_M, None)

    torch.testing.assert_close(cross_entropy(head_VS, slots_MS, targets_M, torch.arange(50)), full)
    assert cross_entropy(head_VS, slots_MS, targets_M, torch.arange(5)) < full


def test_parents_are_trained_and_read_back(training: list[np.ndarray], unseen: list[np.ndarray]) -> None:
    architecture = CodecArchitecture(**{**ARCHITECTURE.model_dump(), "parent_spans": (2, 4)})
    params = PARAMS.model_copy(update={"architecture": architecture, "steps": 40})

    codec = train(params, training, VOCABULARY)
    encoded, _ = validate(codec, group_documents(unseen, architecture), params)

    assert codec.from_parents.weight.abs().max() > 0
    assert encoded.token_recall >= 0.95


def test_no_text_is_said_in_words() -> None:
    with pytest.raises(TooLittleText, match="even shards"):
        train(SHORT, [], VOCABULARY)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 50), st.integers(0, 99))
def test_every_group_comes_once_in_each_round_whatever_the_batch(groups: int, batch: int, seed: int) -> None:
    order = GroupOrder(groups, batch, seed)
    steps = -(-2 * groups // batch)

    seen = torch.cat([order.batch(step) for step in range(steps)])

    assert seen[:groups].sort().values.tolist() == list(range(groups))
    assert seen[groups : 2 * groups].sort().values.tolist() == list(range(groups))
    late = GroupOrder(groups, batch, seed)
    assert torch.equal(late.batch(steps - 1), order.batch(steps - 1)), "a resumed run sees the same batches"


def test_the_rate_warms_up_and_falls_to_its_floor() -> None:
    params = CodecParams(steps=100, warmup_steps=10)
    rates = [learning_rate(params, step) for step in range(101)]

    assert rates[0] == pytest.approx(params.rate / 10)
    assert max(rates) == rates[10] == pytest.approx(params.rate)
    assert rates[100] == pytest.approx(params.rate_floor)


def test_a_large_vocabulary_gets_more_random_tokens_and_a_fingerprint_only_where_that_is_set() -> None:
    usual = CodecParams()

    assert [usual.random_share(size) for size in (300, 4096, 8192)] == [0.05, 0.05, 0.1]
    assert usual.random_share(49_152) == 0.4
    assert CodecParams(random_tokens=0.5).random_share(49_152) == 0.5
    assert "most_random_tokens" not in usual.model_dump(mode="json")
    assert CodecParams(most_random_tokens=0.2).model_dump(mode="json")["most_random_tokens"] == 0.2
