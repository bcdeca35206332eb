"""Before/after cards: how the host and the host with its shadow go on with the same sealed text."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tasks.shadows import Shadow, attached

if TYPE_CHECKING:
    from tasks.hosts import Host


def cards(
    host: "Host", shadow: Shadow, chunks_NT: Tensor, *, count: int, tokens: int
) -> list[dict[str, str]]:
    """Of `count` chunks, evenly chosen: a beginning, its true continuation, and two greedy ones.

    The beginning is the first half of the chunk, at most 96 tokens; continuations have `tokens` tokens.
    """
    chosen = torch.linspace(0, len(chunks_NT) - 1, min(count, len(chunks_NT))).long()
    made = []
    for ids_T in chunks_NT[chosen]:
        start = min(96, len(ids_T) // 2)
        before = continuation(host, ids_T[:start], tokens)
        with attached(host, shadow):
            after = continuation(host, ids_T[:start], tokens)
        made.append(
            {
                "beginning": _text(host, ids_T[:start]),
                "truth": _text(host, ids_T[start : start + tokens]),
                "before": before,
                "after": after,
            }
        )
    return made


@torch.no_grad()
def continuation(host: "Host", ids_T: Tensor, tokens: int) -> str:
    """The greedy continuation of token ids, as text; whatever is attached to the host is at work."""
    model: Any = host.model
    ids_1T = ids_T.to(host.device)[None]
    made_1T = model.generate(
        ids_1T,
        attention_mask=torch.ones_like(ids_1T),
        max_new_tokens=tokens,
        do_sample=False,
        eos_token_id=host.end,
        pad_token_id=host.end,
    )
    return _text(host, made_1T[0, len(ids_T) :])


def _text(host: "Host", ids_T: Tensor) -> str:
    return str(host.tokenizer.decode(ids_T.tolist(), skip_special_tokens=True))
