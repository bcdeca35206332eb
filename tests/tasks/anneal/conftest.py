"""A tiny host of six layers with a shadow on three of them."""
# ruff: noqa: F811 - fixtures are imported, and then asked for by name

from dataclasses import replace

import pytest
import torch

from tasks.hosts import Host
from tasks.shadows import Shadow, new_shadow
from tests.hosted import host, host_folder, store  # noqa: F401


@pytest.fixture
def shadow(host: Host) -> Shadow:
    zero = new_shadow(host, (1, 3, 5), document="ab" * 32, seeds={})
    draws = torch.Generator().manual_seed(3)
    return replace(zero, deltas=tuple(0.1 * torch.randn(d.shape, generator=draws) for d in zero.deltas))
