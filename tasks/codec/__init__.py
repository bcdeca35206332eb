"""The codec: frozen token codes, blocks, and the attention-free map between a block of tokens and its cell."""

from tasks.codec.binary16 import CODE_BITS, MAX_VOCABULARY, Binary16, check_vocabulary, orthogonal_lift
from tasks.codec.blocks import PAD, blocks
from tasks.codec.model import Codec, freeze, load_codec, parent_means
from tasks.codec.params import CodecArchitecture, CodecParams

__all__ = [
    "CODE_BITS",
    "MAX_VOCABULARY",
    "PAD",
    "Binary16",
    "Codec",
    "CodecArchitecture",
    "CodecParams",
    "blocks",
    "check_vocabulary",
    "freeze",
    "load_codec",
    "orthogonal_lift",
    "parent_means",
]
