"""A small core with active operators, and attachments drawn by hypothesis."""

import pytest
import torch
from hypothesis import strategies as st

from tasks.assembly import MEMORY, TEXT, Attachment, CoreArchitecture, ResidualCore
from tests.tasks.threads import one_thread  # noqa: F401 - of the whole room

VOCABULARY = 61
SOURCE = 24
SMALL = CoreArchitecture(width=64, iterations=2, hidden=32, kernel=3, dilations=(1, 2), correction_hidden=32)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="session")
def core() -> ResidualCore:
    """A core in which every operator does something, as after training."""
    generator = seeded(1)
    made = ResidualCore(SMALL, VOCABULARY, {MEMORY: SOURCE, TEXT: 16}, generator)
    made.start_from_codec(torch.randn(VOCABULARY, SOURCE, generator=generator), generator)
    with torch.no_grad():
        for parameter in made.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(0.1 * noise)
            parameter.requires_grad_(False)
    return made.eval()


@st.composite
def batches(draw: st.DrawFn) -> torch.Tensor:
    """Token ids (B, L)."""
    rows, length = draw(st.integers(1, 3)), draw(st.integers(2, 14))
    return torch.randint(VOCABULARY, (rows, length), generator=seeded(draw(st.integers(0, 10**6))))


@st.composite
def attachments_for(draw: st.DrawFn, tokens_BL: torch.Tensor, kind: str = MEMORY) -> Attachment:
    """Elements anywhere in a batch, several at one node now and then."""
    rows, length = tokens_BL.shape
    count = draw(st.integers(1, 12))
    generator = seeded(draw(st.integers(0, 10**6)))
    width = SOURCE if kind == MEMORY else 16
    return Attachment(
        kind,
        torch.randn(count, width, generator=generator),
        torch.randint(rows, (count,), generator=generator),
        torch.randint(length, (count,), generator=generator),
        torch.zeros(count, dtype=torch.int64),
        torch.rand(count, generator=generator) + 0.05,
    )
