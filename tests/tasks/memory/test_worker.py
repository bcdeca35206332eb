"""Workers: residuals are optimised per block, and a document's cells depend on the document alone."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.codec import CellDtype, Codec, group_documents
from tasks.errors import TaskError
from tasks.memory import Figures, MemoryParams, Tiles, encode_cells, measure, pool, work_documents

PARAMS = MemoryParams(tile_blocks=8, max_steps=60, patience=10)


def payloads(codec: Codec, documents: list[np.ndarray], params: MemoryParams = PARAMS) -> list[bytes]:
    return [encode_cells(worked.memory) for worked in work_documents(codec, documents, params)]


def figures(codec: Codec, documents: list[np.ndarray], params: MemoryParams) -> Figures:
    worked = work_documents(codec, documents, params)
    steps = [int(item.steps_N.sum()) for item in worked]
    return pool(measure(codec, documents, [item.memory for item in worked], steps, params))


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_adaptation_reads_back_what_the_encoder_alone_does_not(
    codec: Codec, documents: list[np.ndarray], dtype: CellDtype
) -> None:
    params = PARAMS.model_copy(update={"dtype": dtype})

    encoded = figures(codec, documents, params.model_copy(update={"max_steps": 0}))
    adapted = figures(codec, documents, params)

    assert encoded.steps == 0
    assert encoded.token_recall < 0.99
    assert adapted.token_recall > encoded.token_recall
    assert adapted.token_recall >= 0.99
    assert adapted.span8_exact > encoded.span8_exact
    assert adapted.loss < encoded.loss
    assert 0 < adapted.steps < 60 * adapted.blocks


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(range(30)), st.integers(1, 30))
def test_a_documents_bytes_do_not_depend_on_its_company(
    codec: Codec, documents: list[np.ndarray], order: list[int], count: int
) -> None:
    company = [documents[i] for i in order[:count]]

    among_others = payloads(codec, company)
    alone = payloads(codec, company[-1:])

    assert among_others[-1] == alone[0]


def test_company_does_not_matter_where_blocks_share_parents(
    parented_codec: Codec, documents: list[np.ndarray]
) -> None:
    together = payloads(parented_codec, documents[:10])

    assert together == [payloads(parented_codec, [document])[0] for document in documents[:10]]


def test_more_threads_give_the_same_bytes(codec: Codec, documents: list[np.ndarray]) -> None:
    threads = torch.get_num_threads()
    lenient = PARAMS.model_copy(update={"max_steps": 2})
    try:
        torch.set_num_threads(1)
        first = payloads(codec, documents[:4], lenient)
        torch.set_num_threads(2)
        assert payloads(codec, documents[:4], lenient) == first
    finally:
        torch.set_num_threads(threads)


def test_blocks_that_pass_take_no_step_and_keep_the_encoders_cells(
    codec: Codec, documents: list[np.ndarray]
) -> None:
    lenient = PARAMS.model_copy(update={"margin": 0.0})

    [worked] = [w for w in work_documents(codec, documents, lenient) if len(w.memory) > 4][:1]
    steps = [int(s) for w in work_documents(codec, documents, lenient) for s in w.steps_N]

    assert 0 in steps
    assert len(worked.steps_N) == len(worked.memory)
    strict = [int(s) for w in work_documents(codec, documents[:10], PARAMS) for s in w.steps_N]
    assert sum(strict) > sum(steps[: len(strict)]), "a margin has to be earned"


def test_a_block_that_no_longer_improves_is_given_up(codec: Codec, documents: list[np.ndarray]) -> None:
    hopeless = PARAMS.model_copy(update={"margin": 1e6, "patience": 3, "max_steps": 50})

    steps = torch.cat([w.steps_N for w in work_documents(codec, documents[:3], hopeless)])

    assert steps.max() <= 50
    assert steps.min() >= 3


LARGE = PARAMS.model_copy(update={"whole_vocabulary": 100, "candidates": 96, "examine_steps": 4})
"""The codec's vocabulary of 300 tokens counts as a large one."""


def test_candidates_read_as_well_as_the_whole_vocabulary(codec: Codec, documents: list[np.ndarray]) -> None:
    over_all = figures(codec, documents, PARAMS)

    over_candidates = figures(codec, documents, LARGE)

    assert over_candidates.token_recall >= over_all.token_recall - 0.002
    assert over_candidates.loss <= 1.1 * over_all.loss  # what is no candidate of a block is not pushed down
    assert over_candidates.steps <= 1.5 * over_all.steps


def test_a_block_that_passed_over_candidates_passes_with_the_full_softmax(
    codec: Codec, documents: list[np.ndarray]
) -> None:
    few = LARGE.model_copy(update={"candidates": 24, "hard_negatives": 1, "max_steps": 200, "patience": 200})
    some = documents[:8]

    worked = work_documents(codec, some, few)

    groups = group_documents(some, codec.architecture)
    cells_MGC = torch.cat([item.memory.dequantise() for item in worked]).unsqueeze(1)
    reading = Tiles(codec, few.tile_blocks).read_all(groups, cells_MGC)
    steps_N = torch.cat([item.steps_N for item in worked])
    left_early_N = (steps_N > 0) & (steps_N < 200)
    assert left_early_N.any()
    assert (reading.margin_NT.amin(1)[left_early_N] >= few.margin - 1e-3).all()


@pytest.mark.parametrize("products", ["float32", "bfloat16"])
def test_company_does_not_matter_over_candidates_either(
    codec: Codec,
    parented_codec: Codec,
    documents: list[np.ndarray],
    products: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tasks.memory.scoring.product_dtype", lambda device: torch.bfloat16)
    params = LARGE.model_copy(update={"products": products})
    for trained in (codec, parented_codec):
        together = payloads(trained, documents[:6], params)

        assert together == [payloads(trained, [document], params)[0] for document in documents[:6]]


def test_candidates_that_a_block_fills_are_refused(codec: Codec, documents: list[np.ndarray]) -> None:
    with pytest.raises(TaskError, match="8 candidates are too few for blocks of 8 tokens"):
        work_documents(codec, documents, LARGE.model_copy(update={"candidates": 8}))


def test_a_tile_that_would_split_a_group_is_refused(
    parented_codec: Codec, documents: list[np.ndarray]
) -> None:
    with pytest.raises(TaskError, match="multiple of the codec's group of 4"):
        work_documents(parented_codec, documents, MemoryParams(tile_blocks=6))
