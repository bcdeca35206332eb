"""How memories, and records of documents and shards, are made: what their fingerprints consist of."""

from store import Recipe, Ref, fingerprint
from tasks.memory.params import MemoryParams

RECIPE = "memory.build/2"
REJECTION_RECIPE = "memory.rejection/1"
SHARD_RECIPE = "memory.shard/1"


def memory_recipe(params: MemoryParams, name: str, digest: str, tokenizer: Ref, codec: Ref) -> Recipe:
    """How the memory of a document is made, of its name and the digest of its text."""
    return Recipe(RECIPE, {"name": name, **params.identity()}, (digest, codec.version, tokenizer.version))


def rejection_recipe(recipe: str) -> str:
    """Fingerprint of the record that the document whose memory has this `recipe` was rejected."""
    return fingerprint(REJECTION_RECIPE, params={}, inputs=[recipe])


def shard_recipe(params: MemoryParams, shard: Ref, tokenizer: Ref, codec: Ref) -> str:
    """Fingerprint of the outcomes of a shard's documents."""
    inputs = [shard.version, codec.version, tokenizer.version]
    return fingerprint(SHARD_RECIPE, params=params.identity(), inputs=inputs)
