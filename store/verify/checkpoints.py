"""Checkpoints and blocks of history: copies of what the log and the index files say.

Nothing depends on them but speed. So damage to them touches no element, and all of it can be made again. They
are looked at first, because the copies of log entries fill gaps in the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from store.format import CHECKPOINT_PREFIX, HISTORY_PREFIX, INDEX_PREFIX, check_digest
from store.history import Block, decode_block
from store.manifest import Checkpoint, decode_checkpoint
from store.verify.survey import Survey


@dataclass(slots=True)
class Derived:
    """What the intact checkpoints say, oldest first, and the copies of log entries in their blocks."""

    checkpoints: list[Checkpoint] = field(default_factory=list)
    copies: dict[int, bytes] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)

    @property
    def newest(self) -> Checkpoint:
        """The newest of them, an empty one if there is none."""
        return self.checkpoints[-1] if self.checkpoints else Checkpoint()


def check_checkpoints(survey: Survey) -> Derived:
    """Check all checkpoints and blocks of history by themselves."""
    found = Derived()

    def check(key: str, data: bytes) -> None:
        if key.endswith(".json"):
            found.checkpoints.append(decode_checkpoint(data, key))
        else:  # those of earlier versions, which nobody reads any more
            check_digest(data, digest_in(key), key, holds="log checkpoint of an earlier version")

    survey.examine(survey.keys(CHECKPOINT_PREFIX), check)
    found.checkpoints.sort(key=lambda checkpoint: checkpoint.sequence)
    for checkpoint in found.checkpoints:
        found.blocks.update((block.digest, block) for block in checkpoint.history)

    def check_block(key: str, data: bytes) -> None:
        block = found.blocks.get(digest_in(key))
        if block is None:
            check_digest(data, digest_in(key), key, holds="block of log entries")
        else:
            found.copies.update(enumerate(decode_block(data, block), start=block.first))

    def check_bundle(key: str, data: bytes) -> None:
        check_digest(data, digest_in(key), key, holds="key tables")

    survey.examine(survey.keys(HISTORY_PREFIX), check_block)
    survey.examine(survey.keys(INDEX_PREFIX, ".bundle"), check_bundle)
    return found


def digest_in(key: str) -> str:
    """Return the digest in a key such as `log/history-<digest>.parquet` or `index/<digest>.keys`."""
    return key.rpartition("/")[2].rpartition(".")[0].rpartition("-")[2]
