"""A codec small enough to train in a second, on token streams with the skew of real text."""

import numpy as np
import pytest

from tasks.codec import Codec, CodecArchitecture, CodecParams, train

VOCABULARY = 300
ARCHITECTURE = CodecArchitecture(
    block_tokens=8, cell_width=96, slot_width=32, mixing_width=8, channel_width=64
)
PARAMS = CodecParams(architecture=ARCHITECTURE, steps=60, batch_blocks=32, candidates=64, warmup_steps=5)


def token_documents(seed: int, count: int) -> list[np.ndarray]:
    """Documents of 1 to 60 ids, few of them frequent, most of them rare."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 60, count)
    return [(rng.zipf(1.3, n) % (VOCABULARY - 2) + 2).astype(np.uint16) for n in lengths]


@pytest.fixture(scope="session")
def training() -> list[np.ndarray]:
    return token_documents(1, 120)


@pytest.fixture(scope="session")
def unseen() -> list[np.ndarray]:
    return token_documents(2, 40)


@pytest.fixture(scope="session")
def codec(training: list[np.ndarray]) -> Codec:
    return train(PARAMS, training, VOCABULARY)
