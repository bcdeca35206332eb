"""How the evaluation of attachments is made: what its fingerprint consists of."""

from collections.abc import Sequence

from store import Recipe, Ref
from tasks.evaluation.params import EvaluationParams

RECIPE = "evaluation.attachment/2"


def evaluation_recipe(params: EvaluationParams, snapshot: str, core: Ref, corpus: Sequence[Ref]) -> Recipe:
    """How the evaluation of the snapshot of an id is made against a core, with the shards of its corpus."""
    shards = sorted(corpus, key=lambda ref: ref.name)
    inputs = (snapshot, core.version, *(ref.version for ref in shards))
    return Recipe(RECIPE, params.model_dump(mode="json"), inputs)
