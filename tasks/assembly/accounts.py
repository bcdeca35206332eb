"""What a core is made of, in the categories that must be kept apart (FEM-ASM, accounting)."""

from dataclasses import dataclass

from tasks.assembly.model import ResidualCore


@dataclass(frozen=True)
class CoreAccounts:
    """Parameters and bytes of one core.

    `trainable_parameters` by part; `frozen_table_values` and bytes of the copying head, taken from the
    codec and the codes; `frozen_buffer_bytes` of buffers recomputed at loading (input codebook).
    """

    trainable_parameters: int
    adapter_parameters: int
    frozen_table_values: int
    frozen_table_bytes: int
    frozen_buffer_bytes: int


def core_accounts(core: ResidualCore) -> CoreAccounts:
    """Count a core; parameters count as trainable whether or not they are frozen by now."""
    stored = {name for name, _ in core.named_buffers() if name in core.state_dict()}
    tables = [buffer for name, buffer in core.named_buffers() if name in stored]
    others = [buffer for name, buffer in core.named_buffers() if name not in stored]
    return CoreAccounts(
        trainable_parameters=sum(p.numel() for p in core.parameters()),
        adapter_parameters=sum(p.numel() for p in core.adapters.parameters()),
        frozen_table_values=sum(b.numel() for b in tables),
        frozen_table_bytes=sum(b.numel() * b.element_size() for b in tables),
        frozen_buffer_bytes=sum(b.numel() * b.element_size() for b in others),
    )
