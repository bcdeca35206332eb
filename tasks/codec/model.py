"""The codec: an attention-free encoder from a block of tokens to a cell, and the decoder back (FEM-ASM).

Every slot owns C / T numbers of the cell. Slots exchange information through mixing layers on both sides.
Their last maps start at zero: training begins from independent slots and learns the context from there.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tasks.codec.binary16 import Binary16
from tasks.codec.params import CodecArchitecture, CodecParams
from tasks.errors import BadPayload
from tasks.payload import fitting, load_module, pack_tensors, unpack_tensors

_WHAT = "codec"
_HEAD_GAIN = 3.0
"""Start of the head: a slot state equal to a code beats the next code by this times S^0.5 / 8, in nats."""


class MixingLayer(nn.Module):
    """One residual step: mixing across slots for each channel, then across channels for each slot."""

    def __init__(self, slots: int, width: int, mixing_width: int, channel_width: int) -> None:
        super().__init__()
        self.slot_norm = nn.LayerNorm(width)
        self.slot_in = nn.Linear(slots, mixing_width)
        self.slot_out = nn.Linear(mixing_width, slots)
        self.channel_norm = nn.LayerNorm(width)
        self.channel_in = nn.Linear(width, channel_width)
        self.channel_out = nn.Linear(channel_width, width)

    def forward(self, h_BTS: Tensor) -> Tensor:
        mixed_BST = self.slot_out(F.gelu(self.slot_in(self.slot_norm(h_BTS).transpose(1, 2))))
        h_BTS = h_BTS + mixed_BST.transpose(1, 2)
        across_BTS: Tensor = self.channel_out(F.gelu(self.channel_in(self.channel_norm(h_BTS))))
        return h_BTS + across_BTS


class Codec(nn.Module):
    """Block of T token ids -> cell of C numbers -> T slot states -> T x V logits, all slots at once.

    The decoder reads the cell alone, plus the means of the document's own cells over `parent_spans` when the
    architecture has any; it never receives the block's tokens.
    """

    def __init__(self, architecture: CodecArchitecture, vocab_size: int, generator: torch.Generator) -> None:
        super().__init__()
        a = architecture
        self.architecture = a
        self.vocab_size = vocab_size
        layer_shape = (a.block_tokens, a.slot_width, a.mixing_width, a.channel_width)
        self.identity = Binary16(vocab_size, a.slot_width, a.code_seed)
        self.encoder = nn.ModuleList(MixingLayer(*layer_shape) for _ in range(a.encoder_layers))
        self.encoder_norm = nn.LayerNorm(a.slot_width)
        self.to_cell = nn.Linear(a.slot_width, a.slot_cell_width)
        self.from_cell = nn.Linear(a.slot_cell_width, a.slot_width)
        if a.parent_spans:
            self.from_parents = nn.Linear(len(a.parent_spans) * a.slot_cell_width, a.slot_width, bias=False)
        self.decoder = nn.ModuleList(MixingLayer(*layer_shape) for _ in range(a.decoder_layers))
        self.slot_norm = nn.LayerNorm(a.slot_width)
        self.head = nn.Linear(a.slot_width, vocab_size, bias=False)
        self._initialise(generator)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        if self.head.weight.is_meta:
            return
        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0, module.in_features**-0.5, generator=generator)
                if module.bias is not None:
                    module.bias.zero_()
        for layer in (*self.encoder, *self.decoder):
            assert isinstance(layer, MixingLayer)
            layer.slot_out.weight.zero_()
            layer.channel_out.weight.zero_()
        if self.architecture.parent_spans:
            self.from_parents.weight.zero_()
        # Ours: the head starts at the tokens' own codes, so that a token the training lacks can be read too.
        self.head.weight.copy_(self.identity.codebook() * _HEAD_GAIN * self.architecture.slot_width**-0.5)

    def encode(self, tokens_BT: Tensor) -> Tensor:
        """Initial cells z0, float32 (B, C), of completed blocks of int64 ids."""
        h_BTS = self.identity(tokens_BT)
        for layer in self.encoder:
            h_BTS = layer(h_BTS)
        cell_BTc: Tensor = self.to_cell(self.encoder_norm(h_BTS))
        return cell_BTc.flatten(1)

    def parents(self, cells_NC: Tensor, present_N: Tensor | None = None) -> Tensor | None:
        """Coarse states (N, P, C) of a document's consecutive cells, or None for a codec without parents.

        Row 0 is the first cell of a document, or any cell whose index in it is a multiple of `group_blocks`.
        Rows where `present_N` is false are padding and enter no mean.
        """
        spans = self.architecture.parent_spans
        return parent_means(cells_NC, present_N, spans) if spans else None

    def slots(self, z_BC: Tensor, parents_BPC: Tensor | None = None) -> Tensor:
        """Slot states (B, T, S), exactly what the vocabulary head reads."""
        a = self.architecture
        if (parents_BPC is None) == bool(a.parent_spans):
            raise ValueError(
                f"this codec reads parents over spans {a.parent_spans}; pass the result of parents() on the "
                "document's cells, or None when there are no spans"
            )
        batch = z_BC.shape[0]
        h_BTS: Tensor = self.from_cell(z_BC.view(batch, a.block_tokens, a.slot_cell_width))
        if parents_BPC is not None:
            own_BPTc = parents_BPC.reshape(batch, -1, a.block_tokens, a.slot_cell_width)
            h_BTS = h_BTS + self.from_parents(own_BPTc.transpose(1, 2).flatten(2))
        for layer in self.decoder:
            h_BTS = layer(h_BTS)
        slots_BTS: Tensor = self.slot_norm(h_BTS)
        return slots_BTS

    def logits(self, z_BC: Tensor, parents_BPC: Tensor | None = None) -> Tensor:
        """Logits (B, T, V) over the whole vocabulary."""
        logits_BTV: Tensor = self.head(self.slots(z_BC, parents_BPC))
        return logits_BTV

    def to_bytes(self) -> bytes:
        """Safetensors payload: the trainable weights, with the architecture as its only metadata entry."""
        record = {"architecture": self.architecture.model_dump(mode="json"), "vocab_size": self.vocab_size}
        return pack_tensors(self.state_dict(), what=_WHAT, record=record)


def parent_means(cells_NC: Tensor, present_N: Tensor | None, spans: tuple[int, ...]) -> Tensor:
    """Means over each aligned run of `span` consecutive cells, for every span: (N, P, C)."""
    count, width = cells_NC.shape
    if present_N is None:
        present_N = torch.ones(count, dtype=torch.bool, device=cells_NC.device)
    weight_N = present_N.to(cells_NC.dtype)
    means = []
    for span in spans:
        runs = -(-count // span)
        padding = runs * span - count
        weight_Rs = F.pad(weight_N, (0, padding)).view(runs, span)
        cells_RsC = F.pad(cells_NC, (0, 0, 0, padding)).view(runs, span, width)
        total_RC = (cells_RsC * weight_Rs.unsqueeze(-1)).sum(1)
        mean_RC = total_RC / weight_Rs.sum(1).clamp(min=1).unsqueeze(-1)
        means.append(mean_RC.repeat_interleave(span, 0)[:count])
    return torch.stack(means, 1)


def freeze(codec: Codec) -> Codec:
    """The same codec in evaluation mode, its parameters out of reach of any gradient."""
    codec.requires_grad_(False)
    return codec.eval()


def load_codec(payload: bytes, params: CodecParams | None = None) -> Codec:
    """A frozen codec from its payload; `params`, when given, must describe the same architecture.

    Raises `BadPayload` when the bytes are not a codec or do not fit their own description.
    """
    tensors, record = unpack_tensors(payload, what=_WHAT)
    with fitting(_WHAT):
        architecture = CodecArchitecture.model_validate(record["architecture"])
        vocab_size = int(record["vocab_size"])
        codec = load_module(
            lambda: Codec(architecture, vocab_size, torch.Generator().manual_seed(0)),
            tensors,
            layers=architecture.encoder_layers + architecture.decoder_layers,
        )
    if params is not None and params.architecture != architecture:
        raise BadPayload(
            f"the codec has architecture {architecture}, not the one asked for, {params.architecture}; "
            "train a codec with these parameters or use this codec's own"
        )
    return freeze(codec)
