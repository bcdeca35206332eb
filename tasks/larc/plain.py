"""The plain way to read candidates: one sequence each, whole logits, no mask. Others are held against it."""

import torch
from torch import Tensor

from tasks.larc.question import Question
from tasks.larc.substrate import Substrate


def plain_energies(
    host: Substrate, question: Question, A_rD: Tensor, B_Dr: Tensor, *, insertion: int = 0
) -> Tensor:
    """Mean log probability per token of every candidate (J,) float32, each read as a sequence of its own.

    `A_rD` and `B_Dr` (float32) correct the input embeddings, or what enters decoder layer `insertion`.
    """

    def correct(h_1TD: Tensor) -> Tensor:
        plain_1TD = h_1TD.float()
        return (plain_1TD + plain_1TD @ A_rD.T @ B_Dr.T).to(h_1TD.dtype)

    energies = []
    for answer in question.candidates:
        ids_T = torch.tensor([*question.prompt_ids, *answer], device=host.device)
        embeds_1TD = host.model.get_input_embeddings()(ids_T[None]).detach()
        if insertion == 0:
            logits_1TV = host.model(inputs_embeds=correct(embeds_1TD), use_cache=False).logits
        else:
            layer = host.model.get_decoder().layers[insertion]
            handle = layer.register_forward_pre_hook(lambda _, given: (correct(given[0]), *given[1:]))
            try:
                logits_1TV = host.model(inputs_embeds=embeds_1TD, use_cache=False).logits
            finally:
                handle.remove()
        logged_TV = torch.log_softmax(logits_1TV[0].float(), -1)
        start = len(question.prompt_ids)
        places_L = torch.arange(start - 1, len(ids_T) - 1, device=host.device)
        energies.append(logged_TV[places_L, ids_T[start:]].mean())
    return torch.stack(energies)
