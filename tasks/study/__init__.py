"""Episodic program selection: training of slow states, sealed predictions, and what feedback gains."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.study.bench import Bench
    from tasks.study.params import JudgeParams, Objective, OuterParams, StudyParams
    from tasks.study.predictions import Cell, Prediction
    from tasks.study.questions import Questioner
    from tasks.study.recipes import Plan
    from tasks.study.scores import RULE, UNTRAINED, SelectionSample
    from tasks.study.step import (
        development,
        evaluate_selection,
        load_selection_samples,
        predict_development,
        train_slow_states,
    )

__all__ = [
    "RULE",
    "UNTRAINED",
    "Bench",
    "Cell",
    "JudgeParams",
    "Objective",
    "OuterParams",
    "Plan",
    "Prediction",
    "Questioner",
    "SelectionSample",
    "StudyParams",
    "development",
    "evaluate_selection",
    "load_selection_samples",
    "predict_development",
    "train_slow_states",
]

export_lazily(__name__)
