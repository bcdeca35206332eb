"""Resources of a system, kept apart by what they are (FEM-ASM, accounting).

A small trainable core beside many frozen values is not a dense model of the same size, so no total is
formed over categories. What depends on the machine, latency and peak memory, stands in `Costs`, beside a
result's identity.
"""

import math
import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from torch import Tensor, nn

from store import Row
from tasks.assembly import CoreAccounts


class Category(StrEnum):
    """What kind of resource a row counts."""

    TRAINABLE = "trainable parameters"
    FROZEN_SHARED = "frozen shared parameters"
    FROZEN_BUFFERS = "frozen buffers"
    STORED_MEMORY = "stored memory values"
    DERIVED = "derived states and readout caches"
    INDEX = "index keys and metadata"
    ARTIFACTS = "physical artifacts"
    PER_QUERY = "selected per query"


@dataclass(frozen=True)
class AccountRow:
    """One line of the table. `values` are numbers of `dtype`, or elements where dtype is "element"."""

    category: Category
    item: str
    values: float
    dtype: str
    bytes: float


@dataclass(frozen=True)
class Costs:
    """Measured on one machine: seconds by condition and in all, peak resident bytes of the process.

    `addressing` holds the index's own queries per second (batched) and latencies of single queries.
    """

    seconds: Mapping[str, float]
    milliseconds_per_task: Mapping[str, float]
    single_task_milliseconds: Mapping[str, float]
    retrieval_seconds: float
    addressing: Mapping[str, float]
    peak_rss_bytes: int


def account(
    core: CoreAccounts,
    codec: nn.Module,
    artifacts: Iterable[Row],
    *,
    elements_per_query: float,
    active_values_per_query: float,
    bytes_per_query: float,
    coarse_values: int = 0,
) -> list[AccountRow]:
    """The table of a snapshot and a core.

    What is selected per query are means over the retrieved condition's tasks. `coarse_values` are derived
    from all stored cells and held nowhere.
    """
    rows = [
        AccountRow(
            Category.TRAINABLE,
            "core without adapters",
            core.trainable_parameters - core.adapter_parameters,
            "float32",
            4 * (core.trainable_parameters - core.adapter_parameters),
        ),
        AccountRow(
            Category.TRAINABLE, "adapters", core.adapter_parameters, "float32", 4 * core.adapter_parameters
        ),
        _module(Category.FROZEN_SHARED, "codec", list(codec.parameters())),
        AccountRow(
            Category.FROZEN_SHARED,
            "copying tables of the core",
            core.frozen_table_values,
            "float32",
            core.frozen_table_bytes,
        ),
        AccountRow(
            Category.FROZEN_BUFFERS,
            "input codebook of the core",
            core.frozen_buffer_bytes / 4,
            "float32",
            core.frozen_buffer_bytes,
        ),
        _module(Category.FROZEN_BUFFERS, "codec", list(codec.buffers())),
    ]
    held = list(artifacts)
    for dtype in sorted({row.dtype for row in held if row.kind == "memory"}):
        cells = [row for row in held if row.kind == "memory" and row.dtype == dtype]
        rows.append(_stored(Category.STORED_MEMORY, "cells", cells))
    for row in sorted(held, key=lambda row: row.name):
        if row.kind in ("index", "reranker"):
            derived = row.name.endswith(("/readout", "/dense"))
            rows.append(_stored(Category.DERIVED if derived else Category.INDEX, row.name, [row]))
    rows.append(
        AccountRow(Category.DERIVED, "coarse states of cells", coarse_values, "float32", 4 * coarse_values)
    )
    for kind in sorted({row.kind for row in held}):
        of_kind = [row for row in held if row.kind == kind]
        size = sum(row.length for row in of_kind)
        rows.append(AccountRow(Category.ARTIFACTS, f"{kind} payloads", len(of_kind), "element", size))
    rows.append(AccountRow(Category.PER_QUERY, "elements", elements_per_query, "element", bytes_per_query))
    rows.append(
        AccountRow(
            Category.PER_QUERY,
            "active values (slot states)",
            active_values_per_query,
            "float32",
            4 * active_values_per_query,
        )
    )
    return rows


def peak_rss_bytes() -> int:
    """Largest resident set of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _module(category: Category, item: str, tensors: Sequence[Tensor]) -> AccountRow:
    values = sum(t.numel() for t in tensors)
    size = sum(t.numel() * t.element_size() for t in tensors)
    return AccountRow(category, item, values, "float32", size)


def _stored(category: Category, item: str, rows: list[Row]) -> AccountRow:
    """Values of the largest tensor of each payload, and the payloads' bytes."""
    values = sum(math.prod(row.shape) if row.shape else 0 for row in rows)
    dtypes = sorted({row.dtype for row in rows if row.dtype})
    return AccountRow(category, item, values, "/".join(dtypes), sum(row.length for row in rows))
