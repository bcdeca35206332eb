"""Small codecs and token documents for the workers."""

import numpy as np
import pytest

from tasks.codec import Codec, CodecArchitecture, CodecParams, train

VOCABULARY = 300
ARCHITECTURE = CodecArchitecture(
    block_tokens=8, cell_width=96, slot_width=32, mixing_width=8, channel_width=64
)


def token_documents(seed: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 90, count)
    return [(rng.zipf(1.3, n) % (VOCABULARY - 2) + 2).astype(np.uint16) for n in lengths]


def trained(parent_spans: tuple[int, ...] = ()) -> Codec:
    architecture = CodecArchitecture(**{**ARCHITECTURE.model_dump(), "parent_spans": parent_spans})
    params = CodecParams(architecture=architecture, steps=14, warmup_steps=2, candidates=64)
    return train(params, token_documents(1, 120), VOCABULARY)


@pytest.fixture(scope="session")
def codec() -> Codec:
    """Trained so briefly that many blocks need adaptation."""
    return trained()


@pytest.fixture(scope="session")
def parented_codec() -> Codec:
    return trained((2, 4))


@pytest.fixture(scope="session")
def documents() -> list[np.ndarray]:
    return token_documents(2, 30)
