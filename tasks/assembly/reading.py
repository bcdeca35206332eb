"""Cross-reading: what a few elements say about the next token where nothing aligns them with the text (ours).

Every interface node asks the elements' states itself. With ``t_i`` the vocabulary table's row of the token at
position ``i``, ``s_j`` the state that stands for position ``j`` of an element (both of unit length here), and
learned ``M``, ``a``, sharpness ``tau`` and threshold ``theta``::

    score_ij = tau * sum_l a_l <M t_(i - l), s_(j - 1 - l)>        what precedes j, beside what precedes i + 1
    p_ij     = exp(score_ij) / (exp(tau * theta) + sum over all j of all elements)
    w_ei     = sum of p_ij over the positions j of element e        u_ei = sum of p_ij s_j / w_ei

(in ``u_ei`` the states stand at their own length), so an element is attached to every node at which it
seems to know what follows, as one source state ``u_ei`` with weight ``w_ei``; adapter, normalised residual
and core stay as they are. The threshold is what speaks for reading nothing: without it (`forced`) the
weights of a node sum to one. Weights below `least_weight` are left out, which makes their absence exact. A
node asks with the tokens up to its own, and elements were stored before the text began, so nothing depends
on later tokens; a sum over positions and elements has no order.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tasks.assembly.attachment import Attachment
from tasks.assembly.params import ReadingArchitecture
from tasks.payload import fitting, load_module, pack_tensors, unpack_tensors

_PAYLOAD = "cross-reading"


@dataclass(frozen=True)
class OpenElement:
    """An element that can be read: `state_NS` float32, what stands for its N positions in order, compared
    with the vocabulary table, and `source_NU` float32, the source states that an adapter of `kind` reads."""

    kind: str
    state_NS: Tensor
    source_NU: Tensor

    def __len__(self) -> int:
        return self.state_NS.shape[0]

    def reordered(self, order_N: Tensor) -> "OpenElement":
        """The same states at other positions."""
        return OpenElement(self.kind, self.state_NS[order_N], self.source_NU[order_N])


class CrossReading(nn.Module):
    """Tokens and open elements -> attachments to every node that finds something in them."""

    table_VS: Tensor

    def __init__(self, architecture: ReadingArchitecture, table_VS: Tensor) -> None:
        """`table_VS` is the codec's vocabulary head (V, S), frozen and not part of the payload."""
        super().__init__()
        a = architecture
        self.architecture = a
        width = table_VS.shape[1]
        self.register_buffer("table_VS", F.normalize(table_VS.float(), dim=-1), persistent=False)
        self.match_SS = nn.Parameter(torch.eye(width))
        self.lag_K = nn.Parameter(torch.full((a.context_tokens,), 1.0 / a.context_tokens))
        self.log_sharpness = nn.Parameter(torch.tensor(math.log(a.sharpness)))
        self.threshold = nn.Parameter(torch.tensor(a.threshold))

    def memory(self, kind: str, slots_NS: Tensor) -> OpenElement:
        """An element of decoded slot states (N, S)."""
        return OpenElement(kind, slots_NS, slots_NS)

    def text(self, kind: str, ids_N: Tensor, source_NU: Tensor) -> OpenElement:
        """An element of token ids (N,), matched by their rows of the table."""
        return OpenElement(kind, self.table_VS[ids_N], source_NU)

    def attach(
        self,
        elements: Sequence[Sequence[OpenElement]],
        tokens_BL: Tensor,
        start: int = 0,
        *,
        forced: bool = False,
    ) -> list[Attachment]:
        """Attachments to the nodes from `start` on of a batch whose tokens up to there are `tokens_BL`.

        `elements` holds those of each row. One attachment is made of each kind of element.
        """
        parts: list[Attachment] = []
        for row, (chosen, tokens_L) in enumerate(zip(elements, tokens_BL, strict=True)):
            if chosen:
                parts += self._read(chosen, tokens_L, row, start, forced)
        kinds = dict.fromkeys(part.kind for part in parts)
        return [_joined([part for part in parts if part.kind == kind]) for kind in kinds]

    def _read(
        self, elements: Sequence[OpenElement], tokens_L: Tensor, row: int, start: int, forced: bool
    ) -> list[Attachment]:
        """What the nodes from `start` on of one row read in its elements."""
        sharpness = self.log_sharpness.exp()
        scores = [sharpness * self.scores(element, tokens_L, start) for element in elements]
        nothing_L1 = (sharpness * self.threshold).expand(len(tokens_L) - start, 1)
        largest_L1 = torch.cat([*scores, nothing_L1], 1).detach().amax(1, keepdim=True)
        masses = [(score_LN - largest_L1).exp() for score_LN in scores]
        total_L = torch.stack([mass_LN.sum(1) for mass_LN in masses]).sum(0)
        if not forced:
            total_L = total_L + (nothing_L1 - largest_L1).exp().squeeze(1)
        parts = []
        for element, mass_LN in zip(elements, masses, strict=True):
            mass_L = mass_LN.sum(1)
            weight_L = mass_L / total_L
            kept = (weight_L.detach() >= self.architecture.least_weight).nonzero().squeeze(1)
            if not len(kept):
                continue
            source_EU = (mass_LN[kept] @ element.source_NU) / mass_L[kept, None]
            row_E = torch.full_like(kept, row)
            parts.append(
                Attachment(
                    element.kind, source_EU, row_E, kept + start, torch.zeros_like(kept), weight_L[kept]
                )
            )
        return parts

    def scores(self, element: OpenElement, tokens_L: Tensor, start: int) -> Tensor:
        """How well what precedes each position of an element agrees with the text up to each node from
        `start` on: (L - start, N), 1 at most while `a` sums to 1 and `M` keeps lengths."""
        lags = self.architecture.context_tokens
        first = max(0, start - lags + 1)
        asked_LS = self.table_VS[tokens_L[first:]] @ self.match_SS.T
        # Padded, because what would lie before the text or the element agrees with nothing.
        key_NS = F.normalize(element.state_NS, dim=-1)
        match_LN = F.pad(asked_LS @ key_NS.T, (lags, 0, lags, 0))
        nodes, positions = len(tokens_L) - start, len(element)
        total = match_LN.new_zeros(nodes, positions)
        for lag in range(lags):
            top, left = lags + start - first - lag, lags - 1 - lag
            total = total + self.lag_K[lag] * match_LN[top : top + nodes, left : left + positions]
        return total

    def to_bytes(self) -> bytes:
        """Safetensors payload: the learned numbers, without the codec's table."""
        record = {
            "architecture": self.architecture.model_dump(mode="json"),
            "table": list(self.table_VS.shape),
        }
        return pack_tensors(self.state_dict(), what=_PAYLOAD, record=record)


def load_reading(payload: bytes, table_VS: Tensor) -> CrossReading:
    """A frozen cross-reading from its payload and the codec's vocabulary head.

    Raises `BadPayload` when the bytes are not one, or one for another table.
    """
    tensors, record = unpack_tensors(payload, what=_PAYLOAD)
    with fitting(_PAYLOAD):
        architecture = ReadingArchitecture.model_validate(record["architecture"])
        if list(record["table"]) != list(table_VS.shape):
            raise ValueError(f"it reads by a table of {record['table']}, not of {list(table_VS.shape)}")
        reading = load_module(lambda: CrossReading(architecture, _placed(table_VS)), tensors, layers=1)
    for parameter in reading.parameters():
        parameter.requires_grad_(False)
    return reading.eval()


def _placed(table_VS: Tensor) -> Tensor:
    """The table on the device that modules are being made on: shapes alone on an outline."""
    return table_VS.to(torch.empty(0).device)


def _joined(parts: Sequence[Attachment]) -> Attachment:
    """Attachments of one kind as one."""
    columns: list[Callable[[Attachment], Tensor]] = [
        lambda part: part.source_EU,
        lambda part: part.row_E,
        lambda part: part.node_E,
        lambda part: part.boundary_E,
        lambda part: part.weight_E,
    ]
    return Attachment(parts[0].kind, *(torch.cat([column(part) for part in parts]) for column in columns))
