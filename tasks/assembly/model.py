"""The residual core: a causal language model that elements can be attached to (FEM-ASM, residual assembly).

One iteration applies the causal local operator S to the node states, then one substep towards the attached
proposals, then the bounded learned correction. All iterations share S, P and the proposals. Without a
supported element every external term is bypassed, so the logits are those of the detached core bit for bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tasks.assembly.attachment import MEMORY, TEXT, Attachment, supported_attachments
from tasks.assembly.head import MixtureHead, Record, copied_columns, start_copying
from tasks.assembly.operators import BoundedCorrection, LocalLayer
from tasks.assembly.params import CoreArchitecture
from tasks.assembly.residual import Field, external_residual, gather_field, substep
from tasks.codec import Binary16
from tasks.payload import fitting, load_module, pack_tensors, unpack_tensors

_PAYLOAD = "core"


@dataclass(frozen=True)
class CoreState:
    """What a core must keep to continue a sequence: its length, the pasts of every causal mixing, the
    record.
    """

    length: int
    pasts: tuple[Tensor, ...]
    record: Record | None


class ResidualCore(nn.Module):
    """Token ids (B, L) and attachments -> logits (B, L, V); node ``i`` predicts the token at ``i + 1``."""

    codebook_VD: Tensor

    def __init__(
        self,
        architecture: CoreArchitecture,
        vocab_size: int,
        source_widths: dict[str, int],
        generator: torch.Generator,
    ) -> None:
        """`source_widths` gives each element kind the width of its source states; one adapter is made per
        kind.
        """
        super().__init__()
        a = architecture
        self.architecture = a
        self.vocab_size = vocab_size
        self.source_widths = dict(source_widths)
        self.identity = Binary16(vocab_size, a.width, a.code_seed)
        # Materialised, because mixed precision would round the lift; counted with the frozen buffers.
        self.register_buffer("codebook_VD", self.identity.codebook(), persistent=False)
        self.adapters = nn.ModuleDict(
            {kind: nn.Linear(width, a.width, bias=False) for kind, width in sorted(source_widths.items())}
        )
        self.local = nn.ModuleList(LocalLayer(a.width, a.hidden, a.kernel, d) for d in a.dilations)
        self.correction = BoundedCorrection(a.width, a.correction_hidden, a.gamma)
        self.head = MixtureHead(a, vocab_size, copied_columns(a.width, source_widths.get(MEMORY, 0)))
        self._initialise(generator)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        if self.codebook_VD.is_meta:
            return
        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0, module.in_features**-0.5, generator=generator)
                if module.bias is not None:
                    module.bias.zero_()
        # An iteration starts as the substep alone: S and P begin by adding nothing.
        self.correction.out.weight.zero_()
        for layer in self.local:
            assert isinstance(layer, LocalLayer)
            layer.out.weight.zero_()

    def start_from_codec(self, codec_head_VS: Tensor, generator: torch.Generator) -> None:
        """Begin with the codec's vocabulary head (V, S), so that memory and text evidence is copied at
        once.
        """
        self._start_copying([TEXT], generator, (self._adapter(MEMORY), codec_head_VS))

    def start_from_codes(self, kinds: Sequence[str], generator: torch.Generator) -> None:
        """Begin by copying the evidence of kinds whose source states are token codes, without memories."""
        self._start_copying(kinds, generator, None)

    def _start_copying(
        self, kinds: Sequence[str], generator: torch.Generator, memory: tuple[nn.Linear, Tensor] | None
    ) -> None:
        start_copying(
            self.head,
            self.architecture,
            coded=[self._adapter(kind) for kind in kinds],
            codes_VK=self.identity.code(torch.arange(self.vocab_size)),
            lift_KD=self.identity.lift_KS,
            generator=generator,
            memory=memory,
        )

    def _adapter(self, kind: str) -> nn.Linear:
        adapter = self.adapters[kind]
        assert isinstance(adapter, nn.Linear)
        return adapter

    def propose(self, attachments: Sequence[Attachment], rows: int, start: int, nodes: int) -> Field | None:
        """The field of all supported elements over nodes ``start .. start + nodes``, or None if there is
        none.
        """
        parts = supported_attachments(attachments, start, start + nodes)
        if not parts:
            return None
        unknown = sorted({part.kind for part in parts} - set(self.source_widths))
        if unknown:
            raise ValueError(f"this core has no adapter for {unknown}; it reads {sorted(self.source_widths)}")
        return gather_field(
            torch.cat([self.adapters[part.kind](part.source_EU).to(torch.float32) for part in parts]),
            torch.cat([part.weight_E for part in parts]),
            torch.cat([part.row_E for part in parts]),
            torch.cat([part.node_E for part in parts]) - start,
            rows=rows,
            nodes=nodes,
        )

    def continue_from(
        self, tokens_BL: Tensor, attachments: Sequence[Attachment] = (), state: CoreState | None = None
    ) -> tuple[Tensor, CoreState]:
        """Log-probabilities (B, L, V) for a window of tokens, and the state from which the sequence
        continues.

        `attachments` name nodes by their position in the whole sequence; elements outside the window are
        ignored.
        """
        a = self.architecture
        rows, nodes = tokens_BL.shape
        start = state.length if state else 0
        field = self.propose(attachments, rows, start, nodes)
        known = iter(state.pasts) if state else None
        pasts: list[Tensor] = []
        z_BLD = F.embedding(tokens_BL, self.codebook_VD)
        for _ in range(a.iterations):
            for layer in self.local:
                z_BLD, past_BHD = layer(z_BLD, next(known) if known else None)
                pasts.append(past_BHD)
            if field is None:
                z_BLD = z_BLD + self.correction(z_BLD, None)
            else:
                residual_BLD = external_residual(z_BLD, field, a.eps)
                z_BLD = substep(z_BLD, residual_BLD, a.alpha)
                z_BLD = z_BLD + self.correction(z_BLD, residual_BLD)
        weight_BL = None if field is None else field.weight_BL
        logits_BLV, record = self.head(z_BLD, weight_BL, tokens_BL, state.record if state else None)
        return logits_BLV, CoreState(start + nodes, tuple(pasts), record)

    def forward(self, tokens_BL: Tensor, attachments: Sequence[Attachment] = ()) -> Tensor:
        """Logits (B, L, V), normalised: they are log-probabilities."""
        return self.continue_from(tokens_BL, attachments)[0]

    def to_bytes(self) -> bytes:
        """Safetensors payload: the trainable weights, described by the shapes that made them."""
        record = {
            "architecture": self.architecture.model_dump(mode="json"),
            "vocab_size": self.vocab_size,
            "source_widths": self.source_widths,
        }
        return pack_tensors(self.state_dict(), what=_PAYLOAD, record=record)


def load_core(payload: bytes) -> ResidualCore:
    """A frozen core from its payload, in evaluation mode.

    Raises `BadPayload` when the bytes are not a core or do not fit their own description.
    """
    tensors, record = unpack_tensors(payload, what=_PAYLOAD)
    with fitting(_PAYLOAD):
        architecture = CoreArchitecture.model_validate(record["architecture"])
        vocab_size = int(record["vocab_size"])
        widths = {str(kind): int(width) for kind, width in record["source_widths"].items()}
        core = load_module(
            lambda: ResidualCore(architecture, vocab_size, widths, torch.Generator().manual_seed(0)),
            tensors,
            layers=len(architecture.dilations) + len(widths),
        )
    for parameter in core.parameters():
        parameter.requires_grad_(False)
    return core.eval()
