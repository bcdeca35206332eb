"""Per-sample results: one row for each task and condition, as Parquet with fixed settings."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """One task under one condition.

    `element` is the task's own, `evidence` the one attached ("" for none) and `evidence_start` the token of
    it that stands at the prompt's first position; `weight` is its weight and `attached` the number of its
    states that were attached. Where elements are read without an alignment, `evidence` names all of them with
    spaces between, `evidence_start` is 0, and `weight` is a target node's total weight in the mean. `nll` is
    in nats per target token, `right_tokens` counts target tokens that were most likely given the true ones
    before, `exact` tells whether the greedy continuation equals the target, `written` is that continuation's
    text, `target` the true one's and `cue` the visible prompt's. `bytes_read` counts the evidence's stored
    bytes (cells' payload, or two bytes a raw token).
    """

    task: str
    kind: str
    condition: str
    family: str
    element: str
    evidence: str
    evidence_start: int
    weight: float
    attached: int
    nll: float
    target_tokens: int
    right_tokens: int
    exact: bool
    bytes_read: int
    cue: str
    target: str
    written: str


def encode_samples(samples: Sequence[Sample]) -> bytes:
    """Parquet bytes in the order given; equal samples give equal bytes with one version of pyarrow."""
    from tasks.tables import encode_records

    return encode_records(Sample, samples)


def load_samples(payload: bytes) -> list[Sample]:
    """The samples of a payload written by `encode_samples`; raises BadPayload when it is none."""
    from tasks.tables import load_records

    return load_records(payload, Sample, what="a table of samples")
