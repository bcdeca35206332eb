"""LoRA on one linear module with factors of each row's own: the baseline that differs from LARC in its place.

LARC corrects what a layer reads, LoRA the weight of one module: (W + B A) x. Rank, start, step and what is
shared are the same, so `Episode`, `update` and the files of states and sessions serve both. On a module of d
to d values, such as the query projection, both have the same number of values, 2 r d.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from tasks.errors import UnfitHost
from tasks.larc.learner import TOKENS, Learner
from tasks.larc.substrate import Substrate

MODULE = "self_attn.q_proj"
"""Ours: the query projection maps d to d, which makes the counts of LARC and LoRA of one rank equal."""


class LoraLearner(Learner):
    """A learner whose factors A (F, r, inputs) and B (F, outputs, r) correct a linear module of one layer.

    The scale is one (`lora_alpha` = rank in `peft`, against which it is tested). Raises `UnfitHost` when
    layer `insertion` has no linear module of that name, and as `Learner` does.
    """

    def __init__(
        self,
        host: Substrate,
        insertion: int = 0,
        *,
        module: str = MODULE,
        tokens: int = TOKENS,
        checkpointing: bool = False,
    ) -> None:
        super().__init__(host, insertion, tokens=tokens, checkpointing=checkpointing)
        try:
            linear = host.model.get_decoder().layers[insertion].get_submodule(module)
        except AttributeError:
            linear = None
        if not module or not isinstance(linear, nn.Linear):
            raise UnfitHost(
                f"decoder layer {insertion} of the host has no linear module {module!r}; name another"
            )
        self.module = module
        self.inputs, self.outputs = linear.in_features, linear.out_features
        self._linear = linear

    def matched_rank(self, rank: int) -> int:
        """The rank here whose number of values is nearest to that of a LARC of `rank`, at least one."""
        return max(1, math.floor(2 * rank * self.host.width / (self.inputs + self.outputs) + 0.5))

    @contextmanager
    def _attached(self, A_nrD: Tensor, B_nDr: Tensor) -> Iterator[None]:
        if not self.module:  # while the host is probed
            yield
            return

        def correct(_: Any, given: tuple[Any, ...], output_nTE: Tensor) -> Tensor:
            return _added(output_nTE, given[0], A_nrD, B_nDr)

        handle = self._linear.register_forward_hook(correct)
        try:
            yield
        finally:
            handle.remove()


def _added(output_nTE: Tensor, x_nTD: Tensor, A_nrD: Tensor, B_nDr: Tensor) -> Tensor:
    """W x + B A x, summed in float32 and rounded once to the dtype of W x."""
    return (output_nTE.float() + x_nTD.float() @ A_nrD.mT @ B_nDr.mT).to(output_nTE.dtype)
