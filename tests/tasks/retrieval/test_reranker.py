"""The reranker is a function of its examples and seed, carries its own constants, and helps."""

import numpy as np
import pytest
import torch

from tasks.corpus import element_split
from tasks.errors import BadCorpus, BadPayload
from tasks.payload import pack_tensors
from tasks.retrieval import FEATURES, Index, Reranker, SearchParams, Sources
from tasks.retrieval.reranker import Examples, train
from tasks.retrieval.training import labelled_alignments
from tests.tasks.retrieval.conftest import PARAMS


def _examples(seed: int) -> Examples:
    draw = np.random.default_rng(seed)
    features = draw.standard_normal((40, 6, len(FEATURES)))
    present = draw.random((40, 6)) < 0.8
    right = present & (features[..., 0] + 2 * features[..., 4] > 2)
    return Examples(features, right, present)


def test_equal_examples_give_equal_bytes_with_any_number_of_threads() -> None:
    before = torch.get_num_threads()
    payloads = set()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            payloads.add(train(_examples(1), PARAMS.reranker, PARAMS.search).to_bytes())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert len(payloads) == 1


def test_training_orders_right_alignments_first() -> None:
    seen, fresh = _examples(1), _examples(2)
    logits = train(seen, PARAMS.reranker, PARAMS.search)(fresh.features_QKF.reshape(-1, len(FEATURES)))
    logits = np.where(fresh.present_QK, logits.reshape(fresh.present_QK.shape), -np.inf)
    answerable = fresh.right_QK.any(1)
    first = fresh.right_QK[np.arange(len(logits)), logits.argmax(1)]
    assert first[answerable].mean() > 0.8


def test_a_reranker_comes_back_with_its_search_bounds(index: Index) -> None:
    assert index.reranker is not None
    bounds = SearchParams(max_alignments=7)
    payload = train(_examples(1), PARAMS.reranker, bounds).to_bytes()
    loaded = Reranker.from_bytes(payload)
    assert loaded.to_bytes() == payload
    assert loaded.search == bounds


def test_a_payload_with_other_features_is_refused() -> None:
    payload = pack_tensors({"mean_F": torch.zeros(2)}, what="reranker", record={"features": ["a", "b"]})
    with pytest.raises(BadPayload, match="train it again"):
        Reranker.from_bytes(payload)


def test_examples_come_from_train_split_elements_only(sources: Sources) -> None:
    examples = labelled_alignments(Index(sources, None, PARAMS.search), PARAMS.reranker)
    again = labelled_alignments(Index(sources, None, PARAMS.search), PARAMS.reranker)
    assert examples.features_QKF.tobytes() == again.features_QKF.tobytes()
    assert examples.right_QK.any(1).mean() > 0.8
    assert not examples.right_QK[~examples.present_QK].any()
    splits = {element_split(name) for name in sources.readout.names}
    assert splits == {"train", "validation", "test"}


def test_without_a_long_enough_train_element_there_is_nothing_to_learn_from(sources: Sources) -> None:
    too_long = PARAMS.reranker.model_copy(update={"cue_tokens": (100_000,)})
    with pytest.raises(BadCorpus, match="train split"):
        labelled_alignments(Index(sources, None, PARAMS.search), too_long)
