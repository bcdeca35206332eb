"""Evaluation of attachments: tasks, evidence conditions, scores, intervals and accounts."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.evaluation.accounting import AccountRow, Category, Costs, account, peak_rss_bytes
    from tasks.evaluation.bootstrap import Interval, interval, resampled_means
    from tasks.evaluation.conditions import (
        Condition,
        Family,
        Found,
        Placement,
        Plan,
        Retriever,
        named_elements,
        plan_evidence,
    )
    from tasks.evaluation.evidence import EvidenceReader, Shown
    from tasks.evaluation.gains import Gains, gains
    from tasks.evaluation.language import LanguageFigures, language_figures
    from tasks.evaluation.pairing import paired_figures
    from tasks.evaluation.params import MOST_RESAMPLES, MOST_TASKS, EvaluationParams
    from tasks.evaluation.publication import (
        PublishedEvaluation,
        SubjectName,
        Table,
        find_evaluation,
        newest_evaluation,
        publish_evaluation,
    )
    from tasks.evaluation.reading import ReadingEvaluator, ReadingPlan, Shelf, plan_reading, reading_family
    from tasks.evaluation.recipes import evaluation_recipe
    from tasks.evaluation.run import Evaluator
    from tasks.evaluation.samples import Sample, encode_samples, load_samples
    from tasks.evaluation.score import Scores, greedy, score
    from tasks.evaluation.setting import EvaluationSetting
    from tasks.evaluation.step import evaluate_attachment, evaluate_reading
    from tasks.evaluation.summary import summarise
    from tasks.evaluation.tasks import PREFIX, QUOTE, AttachmentTask, make_tasks

__all__ = [
    "MOST_RESAMPLES",
    "MOST_TASKS",
    "PREFIX",
    "QUOTE",
    "AccountRow",
    "AttachmentTask",
    "Category",
    "Condition",
    "Costs",
    "EvaluationParams",
    "EvaluationSetting",
    "Evaluator",
    "EvidenceReader",
    "Family",
    "Found",
    "Gains",
    "Interval",
    "LanguageFigures",
    "Placement",
    "Plan",
    "PublishedEvaluation",
    "ReadingEvaluator",
    "ReadingPlan",
    "Retriever",
    "Sample",
    "Scores",
    "Shelf",
    "Shown",
    "SubjectName",
    "Table",
    "account",
    "encode_samples",
    "evaluate_attachment",
    "evaluate_reading",
    "evaluation_recipe",
    "find_evaluation",
    "gains",
    "greedy",
    "interval",
    "language_figures",
    "load_samples",
    "make_tasks",
    "named_elements",
    "newest_evaluation",
    "paired_figures",
    "peak_rss_bytes",
    "plan_evidence",
    "plan_reading",
    "publish_evaluation",
    "reading_family",
    "resampled_means",
    "score",
    "summarise",
]

export_lazily(__name__)
