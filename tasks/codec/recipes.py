"""How the codec is made: what its fingerprint consists of."""

from collections.abc import Sequence

from store import Recipe, Ref
from tasks.codec.params import CodecParams
from tasks.corpus import is_worker_shard

RECIPE = "codec.train/1"


def codec_recipe(params: CodecParams, corpus: Sequence[Ref], tokenizer: Ref) -> Recipe:
    """How the codec of these shards is made, of which the odd ones do not count, and of a tokenizer."""
    shards = sorted((ref for ref in corpus if not is_worker_shard(ref)), key=lambda ref: ref.name)
    inputs = (tokenizer.version, *(ref.version for ref in shards))
    return Recipe(RECIPE, params.model_dump(mode="json"), inputs)
