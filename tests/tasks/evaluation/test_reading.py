"""Evidence read without an alignment: conditions, families, and scores of an untrained cross-reading."""

import numpy as np
import pytest
import torch

from tasks.assembly import CrossReading, ReadingArchitecture, ReadingEvaluationParams, ResidualCore
from tasks.codec import Codec
from tasks.evaluation import (
    AttachmentTask,
    Condition,
    EvidenceReader,
    Family,
    ReadingEvaluator,
    ReadingPlan,
    Sample,
    Shelf,
    encode_samples,
    load_samples,
    plan_reading,
    reading_family,
    score,
    summarise,
)
from tests.tasks.evaluation.conftest import PARAMS, ExactMatch

ELEMENTS = 3
READS = ReadingEvaluationParams(elements=ELEMENTS)


@pytest.fixture(scope="module")
def plan(tasks: list[AttachmentTask], texts: dict[str, np.ndarray]) -> ReadingPlan:
    return plan_reading(tasks, answers(tasks, texts), list(texts), READS, seed=1)


def answers(tasks: list[AttachmentTask], texts: dict[str, np.ndarray]) -> list[list[str]]:
    found = ExactMatch(texts).search_many([task.cue for task in tasks], ELEMENTS + 1)
    return [[hit.name for hit in answer] for answer in found]


@pytest.fixture(scope="module")
def evaluator(codec: Codec, core: ResidualCore, reader: EvidenceReader) -> ReadingEvaluator:
    reading = CrossReading(
        ReadingArchitecture(context_tokens=8, threshold=0.7), codec.head.weight.detach()
    ).requires_grad_(False)
    shelf = Shelf(reading, core, reader.cells, reader.text, reader.order, reader.stored_bytes, seed=3)
    return ReadingEvaluator(core, reading, shelf, str, 16)


@pytest.fixture(scope="module")
def samples(evaluator: ReadingEvaluator, tasks: list[AttachmentTask], plan: ReadingPlan) -> list[Sample]:
    return evaluator.run(tasks, plan)[0]


def of(samples: list[Sample], condition: Condition) -> list[Sample]:
    return [sample for sample in samples if sample.condition == condition]


def test_a_plan_reads_the_own_document_what_was_found_or_others(
    tasks: list[AttachmentTask], plan: ReadingPlan
) -> None:
    for task, own, wrong in zip(tasks, plan[Condition.RIGHT], plan[Condition.WRONG], strict=True):
        assert own == (task.element,)
        assert len(set(wrong)) == ELEMENTS
        assert task.element not in wrong
    assert plan[Condition.WRONG] == plan[Condition.WRONG_WEIGHED]
    assert plan[Condition.RAW_TEXT] == plan[Condition.RETRIEVED]
    assert not any(plan[Condition.NONE])


def test_the_nearest_others_are_those_that_were_found_without_the_own(tasks: list[AttachmentTask]) -> None:
    reads = ReadingEvaluationParams(elements=2, wrong="nearest")
    found = [["memory/a", task.element, "memory/b"] for task in tasks]
    plan = plan_reading(tasks, found, [], reads, seed=1)
    assert set(plan[Condition.WRONG]) == {("memory/a", "memory/b")}
    assert plan[Condition.RETRIEVED] == [("memory/a", task.element) for task in tasks]


def test_families_are_never_those_of_coordinates() -> None:
    families = {condition: reading_family(condition) for condition in Condition}
    assert Family.ORACLE not in families.values()
    assert families[Condition.NONE] is Family.STANDALONE
    assert {c for c, f in families.items() if f is Family.EXTERNAL} == {
        Condition.RETRIEVED,
        Condition.RAW_TEXT,
    }


def test_elements_answer_without_a_place_and_wrong_ones_weighed_cost_next_to_nothing(
    samples: list[Sample],
) -> None:
    nll = {c: float(np.mean([s.nll for s in of(samples, c)])) for c in Condition}
    exact = {c: float(np.mean([s.exact for s in of(samples, c)])) for c in Condition}
    assert nll[Condition.RIGHT] < nll[Condition.NONE] - 2
    assert nll[Condition.RETRIEVED] < nll[Condition.NONE] - 2
    assert nll[Condition.WRONG_WEIGHED] < nll[Condition.NONE] + 0.05
    assert nll[Condition.SHUFFLED] > nll[Condition.RIGHT] + 2
    assert exact[Condition.RETRIEVED] > 0.7
    assert exact[Condition.RAW_TEXT] > 0.7
    assert exact[Condition.NONE] == 0


def test_no_evidence_is_the_core_alone_bit_for_bit(
    samples: list[Sample], core: ResidualCore, tasks: list[AttachmentTask]
) -> None:
    cue_BC = torch.from_numpy(np.stack([task.cue for task in tasks[:16]]))
    target_BT = torch.from_numpy(np.stack([task.target for task in tasks[:16]]))
    alone = score(core, cue_BC, target_BT).nll_BT.mean(1, dtype=np.float64)
    assert [s.nll for s in of(samples, Condition.NONE)[:16]] == alone.tolist()
    assert not any(s.attached or s.weight or s.bytes_read for s in of(samples, Condition.NONE))


def test_the_greedy_continuation_is_exact_where_every_forced_choice_is_right(samples: list[Sample]) -> None:
    assert all(s.exact == (s.right_tokens == s.target_tokens) for s in samples)


def test_samples_name_all_elements_and_their_summary_says_by_which_protocol(
    samples: list[Sample], tasks: list[AttachmentTask], plan: ReadingPlan
) -> None:
    assert load_samples(encode_samples(samples)) == samples
    assert [s.evidence.split() for s in of(samples, Condition.WRONG)] == [
        list(names) for names in plan[Condition.WRONG]
    ]
    summary = summarise(samples, PARAMS, protocol="question-only")
    assert summary["protocol"] == "question-only"
    assert summary["tasks"] == len(tasks)
    assert summary["conditions"]["right"]["family"] == Family.ORACLE_ELEMENT
    assert summary["conditions"]["right"]["own_document"] == 1
    assert summary["conditions"]["wrong"]["own_document"] == 0
    assert summary["conditions"]["wrong"]["mean_weight"] == pytest.approx(1.0, abs=0.1)
    assert summary["gain"]["document_specific"] > 1


def test_raw_text_is_read_in_two_bytes_a_token(
    samples: list[Sample], plan: ReadingPlan, texts: dict[str, np.ndarray]
) -> None:
    read = [sum(2 * len(texts[name]) for name in names) for names in plan[Condition.RAW_TEXT]]
    assert [s.bytes_read for s in of(samples, Condition.RAW_TEXT)] == read
