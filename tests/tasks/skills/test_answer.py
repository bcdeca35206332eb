"""Prompts read once and answered together give what each gives alone, step by step or at once."""

import numpy as np
import pytest
import torch

from tasks.assembly import ResidualCore
from tasks.corpus import EOS
from tasks.skills import Interface, Renderer, answer, read_prompts
from tests.tasks.skills.test_render import PROMPTS, VALUES


@pytest.mark.parametrize("interface", Interface)
def test_answers_of_a_batch_are_those_of_whole_sequences(
    core: ResidualCore, renderer: Renderer, interface: Interface
) -> None:
    prompts = [renderer.prompt(text) for text in PROMPTS]
    results = [renderer.answer(value) for value in VALUES]
    read = read_prompts(core, prompts)

    found = answer(core, renderer, read, interface, results, results)

    for prompt, result, given in zip(prompts, results, found, strict=True):
        attached = renderer.attach(interface, [result], [len(prompt)])
        written: list[int] = []
        for _ in range(renderer.params.slots):
            ids = torch.from_numpy(np.concatenate([prompt, written]).astype(np.int64))[None]
            written.append(int(core(ids, attached)[0, -1].argmax()))
        assert given.written.tolist() == written
        joined = torch.from_numpy(np.concatenate([prompt, result, [EOS]]))[None]
        logits = core(joined[:, :-1], attached)[0, len(prompt) - 1 :]
        nll = -logits.gather(-1, joined[0, len(prompt) :, None]).mean()
        assert given.nll == pytest.approx(float(nll), abs=1e-4)


def test_the_core_ends_at_its_own_end_token(core: ResidualCore, renderer: Renderer) -> None:
    read = read_prompts(core, [renderer.prompt(PROMPTS[0])])
    [found] = answer(core, renderer, read, Interface.NONE, [None], [renderer.answer(7)])
    ends = np.flatnonzero(found.written == EOS)
    assert found.length == (int(ends[0]) if len(ends) else renderer.params.slots)
