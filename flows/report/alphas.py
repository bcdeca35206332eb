"""What choices of alphas are called, on pages and on terminals alike, and which way their figures go."""

CHOICES = {
    "naive": "full strength",
    "consolidated": "consolidated",
    "single": "one alpha",
    "line": "line over depth",
    "random": "uniform draws",
    "quadratic": "quadratic surface",
}
"""Conditions of an evaluation in reading order, and what each is called."""
GAIN, DRIFT = "higher is better", "higher is worse"


def called(choice: str) -> str:
    """What a choice of alphas is called; one that is not known keeps its name."""
    return CHOICES.get(choice, choice)
