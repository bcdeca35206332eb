"""How a core and its cross-reading are made: what their fingerprints consist of."""

from collections.abc import Mapping, Sequence

from store import Recipe, Ref, Row
from tasks.assembly.params import AssemblyParams, ReadingParams
from tasks.corpus import Split

RECIPE = "assembly.train_core/1"
READING_RECIPE = "assembly.train_reading/1"


def core_recipe(
    params: AssemblyParams,
    codec: Ref,
    tokenizer: Ref,
    corpus: Sequence[Ref],
    chosen: Mapping[Split, Sequence[Row]],
) -> Recipe:
    """How the core is made of `chosen` memories, see `select_elements`, and of the shards of their corpus."""
    shards = sorted(corpus, key=lambda ref: ref.name)
    memories = [*chosen["train"], *chosen["validation"]]
    inputs = [codec.version, tokenizer.version]
    inputs += [ref.version for ref in shards] + [row.version for row in memories]
    return Recipe(RECIPE, params.model_dump(mode="json"), tuple(inputs))


def reading_recipe(
    params: ReadingParams,
    core: Ref,
    codec: Ref,
    corpus: Sequence[Ref],
    chosen: Mapping[Split, Sequence[Row]],
) -> Recipe:
    """How the cross-reading of a core is made of `chosen` memories and of the shards of their corpus."""
    memories = [*chosen["train"], *chosen["validation"]]
    inputs = [core.version, codec.version]
    inputs += [ref.version for ref in corpus] + [row.version for row in memories]
    return Recipe(READING_RECIPE, params.identity(), tuple(inputs))
