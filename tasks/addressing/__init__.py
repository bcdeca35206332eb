"""Evaluation of addressing: every kind of task, whole and changed cues, the charts beside their baselines."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.addressing.kinds import Kind, make_tasks, value_vocabulary
    from tasks.addressing.params import AddressingParams, QuestionParams
    from tasks.addressing.questions import QuestionSample
    from tasks.addressing.run import AddressingEvaluator
    from tasks.addressing.samples import AddressingSample
    from tasks.addressing.squad import LONGEST_QUESTION, Paragraph, Question, QuestionSet, read_squad
    from tasks.addressing.step import (
        evaluate_addressing,
        evaluate_questions,
        load_addressing_samples,
        load_question_samples,
    )
    from tasks.addressing.summary import summarise

__all__ = [
    "LONGEST_QUESTION",
    "AddressingEvaluator",
    "AddressingParams",
    "AddressingSample",
    "Kind",
    "Paragraph",
    "Question",
    "QuestionParams",
    "QuestionSample",
    "QuestionSet",
    "evaluate_addressing",
    "evaluate_questions",
    "load_addressing_samples",
    "load_question_samples",
    "make_tasks",
    "read_squad",
    "summarise",
    "value_vocabulary",
]

export_lazily(__name__)
