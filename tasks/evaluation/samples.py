"""Per-sample results: one row for each task and condition, as Parquet with fixed settings."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import get_type_hints

MEDIA = "application/vnd.apache.parquet"


@dataclass(frozen=True)
class Sample:
    """One task under one condition.

    `element` is the task's own, `evidence` the one attached ("" for none) and `evidence_start` the token of
    it that stands at the prompt's first position; `weight` is its weight and `attached` the number of its
    states that were attached. `nll` is in nats per target token, `right_tokens` counts target tokens that
    were most likely given the true ones before, `exact` tells whether the greedy continuation equals the
    target, `written` is that continuation's text, `target` the true one's and `cue` the
    visible prompt's. `bytes_read` counts the
    evidence's stored bytes (cells' payload, or two bytes a raw token).
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.large_string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    records = [asdict(sample) for sample in samples]
    columns = {
        name: pa.array([record[name] for record in records], type=types[kind])
        for name, kind in get_type_hints(Sample).items()
    }
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(columns),
        sink,
        compression="zstd",
        compression_level=3,
        write_statistics=False,
        store_schema=False,
        version="2.6",
        data_page_version="1.0",
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def load_samples(payload: bytes) -> list[Sample]:
    """The samples of a payload written by `encode_samples`; raises BadPayload when it is none."""
    import pyarrow as pa

    from tasks.tables import load_table

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    columns = {name: types[kind] for name, kind in get_type_hints(Sample).items()}
    table = load_table(payload, columns, what="a table of samples")
    return [Sample(**record) for record in table.to_pylist()]
