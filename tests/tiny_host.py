"""A randomly initialised Llama of a few thousand parameters with a byte-level tokenizer, as a folder."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

END = 256


def write_tiny_host(folder: Path, *, layers: int = 2, width: int = 32, seed: int = 0) -> Path:
    """Write a host whose tokens are the 256 bytes and an end of sequence; equal arguments, equal tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    config = LlamaConfig(
        vocab_size=END + 8,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=None,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        for parameter in model.parameters():  # the usual .02 makes every state nearly the same
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.15)
    model.save_pretrained(folder)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
