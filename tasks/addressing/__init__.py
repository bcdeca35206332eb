"""Evaluation of addressing: every kind of task, whole and changed cues, the charts beside their baselines."""

from tasks.addressing.kinds import Kind, make_tasks, value_vocabulary
from tasks.addressing.params import AddressingParams
from tasks.addressing.run import AddressingEvaluator
from tasks.addressing.samples import AddressingSample
from tasks.addressing.squad import Paragraph, Question, QuestionSet, read_squad
from tasks.addressing.step import AddressingResult, evaluate_addressing, load_addressing_samples
from tasks.addressing.summary import summarise

__all__ = [
    "AddressingEvaluator",
    "AddressingParams",
    "AddressingResult",
    "AddressingSample",
    "Kind",
    "Paragraph",
    "Question",
    "QuestionSet",
    "evaluate_addressing",
    "load_addressing_samples",
    "make_tasks",
    "read_squad",
    "summarise",
    "value_vocabulary",
]
