"""Rate and distortion: what documents lose in cells of several widths and number formats."""

from tasks.rates.params import RateParams
from tasks.rates.points import Point, points
from tasks.rates.step import evaluate_rate, rate_recipe

__all__ = ["Point", "RateParams", "evaluate_rate", "points", "rate_recipe"]
