"""How many threads tensors get in tests; a room's conftest takes the fixture in."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Tensors this small gain nothing from threads, which cost much on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
