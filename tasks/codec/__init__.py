"""The codec: frozen token codes, and the attention-free map between a block of tokens and its cell."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.codec.adapt import CellAdam, read_candidates_with_gradient, read_with_gradient
    from tasks.codec.binary16 import CODE_BITS, MAX_VOCABULARY, Binary16, check_vocabulary, orthogonal_lift
    from tasks.codec.blocks import PAD, blocks
    from tasks.codec.candidates import Candidates, score_candidates
    from tasks.codec.groups import BlockGroups, group_documents
    from tasks.codec.model import Codec, freeze, load_codec, parent_means
    from tasks.codec.params import CellDtype, CodecArchitecture, CodecParams
    from tasks.codec.reading import Reading, Recall, read_cells, read_with_rivals, score_slots
    from tasks.codec.recipes import codec_recipe
    from tasks.codec.rounding import as_stored, dequantise, quantise, stored_bytes
    from tasks.codec.step import open_codec, train_codec
    from tasks.codec.train import Trainer, cross_entropy, train, validate

__all__ = [
    "CODE_BITS",
    "MAX_VOCABULARY",
    "PAD",
    "Binary16",
    "BlockGroups",
    "Candidates",
    "CellAdam",
    "CellDtype",
    "Codec",
    "CodecArchitecture",
    "CodecParams",
    "Reading",
    "Recall",
    "Trainer",
    "as_stored",
    "blocks",
    "check_vocabulary",
    "codec_recipe",
    "cross_entropy",
    "dequantise",
    "freeze",
    "group_documents",
    "load_codec",
    "open_codec",
    "orthogonal_lift",
    "parent_means",
    "quantise",
    "read_candidates_with_gradient",
    "read_cells",
    "read_with_gradient",
    "read_with_rivals",
    "score_candidates",
    "score_slots",
    "stored_bytes",
    "train",
    "train_codec",
    "validate",
]

export_lazily(__name__)
