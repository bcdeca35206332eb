"""Whether a host can be read in trees: probed once, before anything is computed with it."""

from typing import TYPE_CHECKING, NoReturn

import torch

from tasks.errors import UnfitHost
from tasks.larc.plain import plain_energies
from tasks.larc.question import Question

if TYPE_CHECKING:
    from tasks.larc.learner import Learner

_PROMPT = 12
_ANSWERS = (5, 1, 3)
_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.1}
"""Nats between a masked row and plain sequences; random weights or trained, mask ignored or not, they lie
several times above or below it."""


def probe(learner: "Learner") -> None:
    """Raise `UnfitHost` unless a row of branches has the energies of its sequences one by one.

    A branch whose neighbours are changed must keep its energy to the last bit (so masks are obeyed), and
    all energies must be those of plain sequences (so positions are).
    """
    host = learner.host
    if host.dtype not in _TOLERANCE:
        raise UnfitHost(f"the host computes in {host.dtype}; open it in float32 or bfloat16")
    generator = torch.Generator().manual_seed(0)
    vocabulary = host.model.get_input_embeddings().num_embeddings
    # All different, so that no answer shares a beginning with another.
    drawn = torch.randperm(vocabulary, generator=generator)[: _PROMPT + 2 * sum(_ANSWERS)].tolist()
    prompt, rest = tuple(drawn[:_PROMPT]), drawn[_PROMPT:]
    answers = [tuple(rest.pop() for _ in range(length)) for length in _ANSWERS]
    others = [tuple(rest.pop() for _ in range(length)) for length in _ANSWERS[:-1]]
    question = Question(prompt, tuple(answers))
    changed = Question(prompt, (*others, answers[-1]))
    A_1rD = torch.zeros(1, 1, host.width, device=host.device)
    try:
        with torch.no_grad():
            read_J, beside_J = (learner.energies([q], A_1rD, A_1rD.mT, [0])[0] for q in (question, changed))
            plain_J = plain_energies(host, question, A_1rD[0], A_1rD[0].mT, insertion=learner.insertion)
    except (TypeError, ValueError, RuntimeError, AttributeError, LookupError) as error:
        reason = " ".join(str(error).split())[:200]
        _refuse(f"cannot be read with embeddings, a 4-D mask and positions ({reason})", error)
    if not torch.equal(read_J[-1], beside_J[-1]):
        _refuse("lets a branch see its neighbours: it ignores a 4-D attention mask")
    apart = float((read_J - plain_J).abs().max())
    if not apart <= _TOLERANCE[host.dtype]:
        _refuse(f"reads a row of branches {apart:.2g} nats per token apart from plain sequences")


def _refuse(what: str, cause: Exception | None = None) -> NoReturn:
    raise UnfitHost(f"the host {what}; use a model whose attention takes one, such as a Llama") from cause
