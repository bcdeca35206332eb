"""Rate and distortion: what documents lose in cells of several widths and number formats."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.rates.params import RateParams
    from tasks.rates.points import Point, points
    from tasks.rates.step import evaluate_rate, rate_recipe

__all__ = ["Point", "RateParams", "evaluate_rate", "points", "rate_recipe"]

export_lazily(__name__)
