"""Conditions: what evidence each one shows, with which weight, and how it scores."""

import numpy as np
import pytest
import torch

from tasks.assembly import ResidualCore
from tasks.evaluation import (
    AttachmentTask,
    Condition,
    Evaluator,
    EvidenceReader,
    Family,
    Plan,
    Shown,
    plan_evidence,
    score,
)
from tests.tasks.evaluation.conftest import PARAMS, ExactMatch, Hit

LENGTH = PARAMS.cue_tokens + PARAMS.target_tokens


@pytest.fixture(scope="module")
def plan(tasks: list[AttachmentTask], texts: dict[str, np.ndarray]) -> Plan:
    lengths = {name: len(ids) for name, ids in texts.items()}
    return plan_evidence(tasks, ExactMatch(texts), lengths, seed=1)


def shown(
    condition: Condition, tasks: list[AttachmentTask], plan: Plan, reader: EvidenceReader
) -> tuple[torch.Tensor, torch.Tensor, Shown]:
    cue_BC = torch.from_numpy(np.stack([task.cue for task in tasks]))
    target_BT = torch.from_numpy(np.stack([task.target for task in tasks]))
    return cue_BC, target_BT, reader.show(condition, plan[condition], cue_BC, LENGTH, 0)


def test_right_lies_at_the_tasks_own_place_retrieved_covers_the_cue_and_wrong_is_another_document(
    tasks: list[AttachmentTask], plan: Plan, texts: dict[str, np.ndarray]
) -> None:
    for task, right, found, wrong in zip(
        tasks, plan[Condition.RIGHT], plan[Condition.RETRIEVED], plan[Condition.WRONG], strict=True
    ):
        assert right is not None
        assert (right.element, right.start) == (task.element, task.offset - PARAMS.cue_tokens)
        # The same words may stand in another document too; what was found must hold the cue.
        assert found is not None
        covered = texts[found.element][found.start : found.start + PARAMS.cue_tokens]
        assert np.array_equal(covered, task.cue)
        assert wrong is not None
        assert wrong.element != task.element
        assert 0 <= wrong.start <= len(texts[wrong.element]) - LENGTH
    assert plan[Condition.WRONG_WEIGHED] == plan[Condition.WRONG]
    assert plan[Condition.RAW_TEXT] == plan[Condition.RETRIEVED]


def test_a_retriever_that_finds_nothing_shows_nothing(
    tasks: list[AttachmentTask], reader: EvidenceReader
) -> None:
    class Empty:
        def search_many(self, cues: list[np.ndarray], k: int) -> list[list[Hit]]:
            return [[] for _ in cues]

    nothing = plan_evidence(tasks, Empty(), {}, seed=1)
    _, _, evidence = shown(Condition.RETRIEVED, tasks, nothing, reader)
    assert evidence.attachments == ()
    assert not evidence.weight_B.any()
    assert not evidence.bytes_B.any()


def test_families_are_never_mixed() -> None:
    assert {c for c in Condition if c.family is Family.STANDALONE} == {Condition.NONE}
    assert {c for c in Condition if c.family is Family.EXTERNAL} == {Condition.RETRIEVED, Condition.RAW_TEXT}


def test_forced_evidence_weighs_one_and_wrong_evidence_weighed_by_the_system_nothing(
    tasks: list[AttachmentTask], plan: Plan, reader: EvidenceReader
) -> None:
    weights = {c: shown(c, tasks, plan, reader)[2].weight_B for c in Condition}
    assert (weights[Condition.RIGHT] == 1).all()
    assert (weights[Condition.WRONG] == 1).all()
    assert weights[Condition.RETRIEVED].min() > 0.5
    assert weights[Condition.RAW_TEXT] == pytest.approx(1.0)
    assert not weights[Condition.WRONG_WEIGHED].any()
    assert not weights[Condition.NONE].any()


def test_shuffled_evidence_holds_the_right_states_in_another_order(
    tasks: list[AttachmentTask], plan: Plan, reader: EvidenceReader
) -> None:
    cells, text = reader.cells, reader.text
    assert cells.lengths_N.tolist() == text.lengths_N.tolist()
    cue_BC = torch.from_numpy(np.stack([task.cue for task in tasks[:1]]))
    right = reader.show(Condition.RIGHT, plan[Condition.RIGHT][:1], cue_BC, LENGTH, 0).attachments[0]
    mixed = reader.show(Condition.SHUFFLED, plan[Condition.SHUFFLED][:1], cue_BC, LENGTH, 0).attachments[0]
    right_rows = {tuple(row) for row in right.source_EU.tolist()}
    mixed_rows = [tuple(row) for row in mixed.source_EU.tolist()]
    # Position 0 is never attached, so one state may differ.
    assert sum(row in right_rows for row in mixed_rows) >= len(mixed_rows) - 1
    assert not torch.equal(right.source_EU, mixed.source_EU)


def test_attachments_cover_prompt_and_target(
    tasks: list[AttachmentTask], plan: Plan, reader: EvidenceReader
) -> None:
    _, _, evidence = shown(Condition.RIGHT, tasks, plan, reader)
    assert evidence.attached().tolist() == [LENGTH - 1] * len(tasks)
    assert evidence.bytes_B.min() >= 1000


def test_forced_scores_are_those_of_one_pass_over_prompt_and_target(
    core: ResidualCore, tasks: list[AttachmentTask], plan: Plan, reader: EvidenceReader
) -> None:
    cue_BC, target_BT, evidence = shown(Condition.RIGHT, tasks, plan, reader)
    scores = score(core, cue_BC, target_BT, evidence.attachments)
    whole = core(torch.cat([cue_BC, target_BT], 1)[:, :-1], evidence.attachments)[:, PARAMS.cue_tokens - 1 :]
    nll_BT = -whole.gather(-1, target_BT[..., None]).squeeze(-1)
    torch.testing.assert_close(torch.from_numpy(scores.nll_BT), nll_BT, rtol=0, atol=1e-4)


@pytest.mark.parametrize("condition", list(Condition))
def test_the_greedy_continuation_is_exact_where_every_forced_choice_is_right(
    condition: Condition,
    core: ResidualCore,
    tasks: list[AttachmentTask],
    plan: Plan,
    reader: EvidenceReader,
) -> None:
    cue_BC, target_BT, evidence = shown(condition, tasks, plan, reader)
    scores = score(core, cue_BC, target_BT, evidence.attachments)
    exact_B = (scores.written_BT == target_BT.numpy()).all(1)
    assert np.array_equal(exact_B, scores.right_BT.all(1))


def test_right_evidence_answers_and_wrong_evidence_does_little_harm(
    core: ResidualCore, tasks: list[AttachmentTask], plan: Plan, reader: EvidenceReader
) -> None:
    samples, seconds = Evaluator(core, reader, str, 16).run(tasks, plan)
    nll = {c: float(np.mean([s.nll for s in samples if s.condition == c])) for c in Condition}
    exact = {c: float(np.mean([s.exact for s in samples if s.condition == c])) for c in Condition}
    assert nll[Condition.RIGHT] < nll[Condition.NONE] - 2
    assert nll[Condition.RETRIEVED] < nll[Condition.WRONG]
    assert nll[Condition.WRONG_WEIGHED] == nll[Condition.NONE]
    assert nll[Condition.WRONG] < nll[Condition.NONE] + 0.5
    assert exact[Condition.RETRIEVED] > 0.8
    assert exact[Condition.RAW_TEXT] > 0.8
    assert exact[Condition.NONE] == 0
    assert set(seconds) == set(Condition)
    assert [(s.condition, s.task) for s in samples] == [(c, t.name) for c in Condition for t in tasks]
