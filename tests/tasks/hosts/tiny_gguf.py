"""A randomly filled Llama of two layers as a GGUF file, with a byte-level tokenizer."""

from pathlib import Path

import gguf
import numpy as np
from tokenizers import pre_tokenizers

WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS = 32, 64, 2, 4, 2
END = 257


def write_tiny_gguf(path: Path, *, seed: int = 0, broken: bool = False) -> Path:
    """Write the file; equal seeds, equal tensors. Matrices are quantised to 8 bits, as real ones are."""
    draw = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(256)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(END + 1)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "<|endoftext|>"])
    writer.add_token_types([gguf.TokenType.NORMAL] * END + [gguf.TokenType.CONTROL])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(END)
    writer.add_bos_token_id(END)

    def add(name: str, *shape: int) -> None:
        values = draw.normal(0, 0.2, shape).astype(np.float32)
        if len(shape) == 1:
            writer.add_tensor(name, values)
            return
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)

    add("token_embd.weight", END + 1, WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        add(f"{block}.attn_norm.weight", WIDTH)
        add(f"{block}.attn_q.weight", WIDTH, WIDTH)
        add(f"{block}.attn_k.weight", WIDTH // HEADS * KV_HEADS, WIDTH)
        add(f"{block}.attn_v.weight", WIDTH // HEADS * KV_HEADS, WIDTH)
        add(f"{block}.attn_output.weight", WIDTH, WIDTH)
        add(f"{block}.ffn_norm.weight", WIDTH)
        add(f"{block}.ffn_gate.weight", HIDDEN, WIDTH)
        add(f"{block}.ffn_up.weight", HIDDEN, WIDTH)
        add(f"{block}.ffn_down.weight", WIDTH, HIDDEN)
    writer.add_tensor("output_norm.weight", np.full(WIDTH, np.nan if broken else 1, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
