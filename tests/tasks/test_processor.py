"""Memory that tensors free serves the next ones."""

import platform
import resource
import sys

import pytest
import torch

from tasks.processor import keep_freed_memory

MEGABYTES = 40


def _faults_of_a_tensor() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(MEGABYTES * 1024**2 // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked to keep memory")
def test_a_tensor_takes_the_memory_of_the_one_before() -> None:
    assert keep_freed_memory()
    pages = MEGABYTES * 1024**2 // resource.getpagesize()
    # The first ones are laid out; a block with others on both sides is a little too small for its like.
    assert min(_faults_of_a_tensor() for _ in range(6)) < pages / 4


def test_a_system_without_that_option_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()
