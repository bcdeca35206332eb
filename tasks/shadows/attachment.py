"""Shadows on a host in memory, put on and taken off without touching its weights."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from torch import Tensor

from tasks.errors import UnfitHost
from tasks.shadows.blocks import down_projections
from tasks.shadows.shadow import Shadow

if TYPE_CHECKING:
    from tasks.hosts import Host


class Attachment:
    """A shadow at work on a host until `detach`.

    A layer whose alpha is 0 or whose D is all zero gets no hook at all: its output is the host's, bit for
    bit. Several shadows may be on one host; what they add is summed.
    """

    def __init__(self, host: "Host", shadow: Shadow) -> None:
        if shadow.host != host.ref.version:
            raise UnfitHost(
                f"the shadow belongs to host version {shadow.host[:12]}, this is {host.ref.version[:12]}; "
                "write it again on this host"
            )
        modules = down_projections(host, shadow.layers)
        self._handles = [
            module.register_forward_hook(_adding(delta, alpha))
            for module, delta, alpha, active in zip(
                modules.values(), shadow.deltas, shadow.alphas, shadow.active, strict=True
            )
            if active
        ]

    def detach(self) -> None:
        """Take the shadow off; a second time does nothing."""
        while self._handles:
            self._handles.pop().remove()


@contextmanager
def attached(host: "Host", shadow: Shadow) -> Iterator[None]:
    """The shadow at work on the host inside the block."""
    attachment = Attachment(host, shadow)
    try:
        yield
    finally:
        attachment.detach()


@contextmanager
def learning(host: "Host", shadow: Shadow, deltas: Sequence[Tensor]) -> Iterator[None]:
    """`deltas`, which may require gradients, at full scale on the shadow's layers inside the block.

    Unlike `attached` this multiplies zeros too, since a gradient has to reach them.
    """
    modules = down_projections(host, shadow.layers)
    handles = [
        module.register_forward_hook(_adding(delta, 1.0))
        for module, delta in zip(modules.values(), deltas, strict=True)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _adding(delta: Tensor, alpha: float) -> Callable[..., Tensor]:
    """A hook that adds alpha D x in float32 and rounds the sum once, to the dtype of W x."""

    def add(_: Any, given: tuple[Tensor, ...], product: Tensor) -> Tensor:
        added = F.linear(given[0].float(), delta)
        return (product.float() + (added if alpha == 1 else alpha * added)).to(product.dtype)

    return add
