"""What an update is about: the corpora that it reads, and the memories whose fate it decides."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from flows.errors import UsageError
from flows.params import Params
from flows.updating.head_state import HeadState
from flows.updating.partitions import expand_partitions, shard_numbers
from store import Ref
from store.errors import ElementNotFound
from store.paths import usable_path
from tasks.corpus import is_worker_shard, shard_of
from tasks.corpus.params import PLACE, CorpusParams
from tasks.errors import BadCorpus

_SHOWN = 5


@dataclass(frozen=True)
class Scope:
    """The whole source; or some of its partitions, with some that go; or some of its worker shards."""

    corpora: tuple[CorpusParams, ...]
    partitions: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Partitions that were asked for and have no file."""
    shards: frozenset[int] = frozenset()
    """Worker shards; empty stands for all."""
    whole: bool = field(default=False)

    @classmethod
    def of(
        cls,
        params: Params,
        *,
        partitions: Sequence[str] = (),
        dropped: Sequence[str] = (),
        shards: str | None = None,
        skip_missing: bool = False,
        at: datetime,
    ) -> "Scope":
        """Make sense of what was asked for, before any work.

        Raises:
            UsageError: options that do not fit the source or one another.
            BadCorpus: partitions without a file, unless they may be missing.
        """
        corpus = params.corpus
        named, gone = expand_partitions(partitions, at), expand_partitions(dropped, at)
        if shards is not None and (named or gone):
            raise UsageError("give partitions or shards, not both: a partition is read as a whole")
        if both := sorted(set(named) & set(gone)):
            raise UsageError(f"partition {both[0]} cannot be updated and dropped at once; decide which")
        if (named or gone) and not corpus.in_partitions:
            raise UsageError(f"corpus.path has no {PLACE} that a partition could stand for; write it there")
        if corpus.in_partitions and not (named or gone):
            raise UsageError(f"corpus.path holds {PLACE}; say which with --partition")
        if not (named or gone):
            chosen = shard_numbers(shards, corpus.shards) if shards is not None else set()
            return cls((corpus,), shards=frozenset(chosen), whole=True)
        all_of_them = [_partition(corpus, name) for name in named]
        found = [(part, _exists(part)) for part in all_of_them]
        there, missing = ([part for part, exists in found if exists is wanted] for wanted in (True, False))
        if missing and not skip_missing:
            raise BadCorpus(_missing(missing))
        if not there and not gone:
            raise BadCorpus(f"{_missing(missing)}; none of the partitions has one")
        return cls(
            tuple(there),
            tuple(str(part.partition) for part in there),
            tuple(gone),
            tuple(str(part.partition) for part in missing),
        )

    def decides(self, memory: str) -> bool:
        """Whether the update decides about the memory of that full name; the others stay as they are."""
        if not self.whole:
            return _partition_of(memory) in self._decided
        name = memory.partition("/")[2]
        return not self.shards or shard_of(name, self.corpora[0].shards) in self.shards

    @cached_property
    def _decided(self) -> frozenset[str]:
        return frozenset((*self.partitions, *self.dropped))

    def takes(self, shard: Ref) -> bool:
        """Whether memories are built of a shard's documents."""
        number = int(shard.name.rpartition("-")[2])
        return is_worker_shard(shard) and (not self.shards or number in self.shards)

    def check(self, base: HeadState, corpus: str) -> None:
        """Raise `ElementNotFound` for a partition that is to go and that the head does not have."""
        if not self.dropped:
            return
        there = base.partitions(corpus)
        held = {*there, *map(_partition_of, base.memories)}
        for partition in self.dropped:
            if partition not in held:
                raise ElementNotFound(
                    f"head {base.head} has no partition {partition} to drop; it has "
                    f"{', '.join(there[-_SHOWN:]) or 'none'}"
                )


def _partition_of(memory: str) -> str:
    """The partition of the memory of a full name `memory/<partition>/<document>`; empty if it has none."""
    _, _, name = memory.partition("/")
    first, slash, _ = name.partition("/")
    return first if slash else ""


def _partition(corpus: CorpusParams, name: str) -> CorpusParams:
    from pydantic import ValidationError

    try:
        return CorpusParams.model_validate({**corpus.model_dump(exclude_unset=True), "partition": name})
    except ValidationError as error:
        raise UsageError(
            f"{name!r} is no name for a partition; use up to 64 letters, digits, dots, dashes or underscores"
        ) from error


def _exists(corpus: CorpusParams) -> bool:
    assert corpus.location is not None, "a partition has a path"
    return usable_path(corpus.location, BadCorpus, "corpus.path").exists()


def _missing(corpora: Sequence[CorpusParams]) -> str:
    shown = ", ".join(str(part.location) for part in corpora[:_SHOWN])
    more = f" and {len(corpora) - _SHOWN} more" if len(corpora) > _SHOWN else ""
    return (
        f"{shown}{more} does not exist, so nothing was updated; bring the file, leave the partition out, or "
        "pass over missing ones with --skip-missing"
    )
